import type { NumberOption } from "@/shared/learning/options";
import { rangeInWords } from "@/shared/learning/options";
import { sentence } from "@/shared/format/text";
import { Field } from "@/shared/ui";
import type { Errors } from "./draft";
import type { OptionField, Texts } from "./options";

interface Props {
  options: readonly NumberOption[];
  of: "strategy_options" | "partitioner_options" | "hyperparameters";
  texts: Texts;
  errors: Errors;
  onChange: (texts: Texts) => void;
}

/** A field for each number, with its default, its range and what it does. */
export function OptionFields({ options, of, texts, errors, onChange }: Props) {
  return options.map((option) => (
    <Field key={option.name} label={option.label} error={errors[`${of}.${option.name}` satisfies OptionField]} hint={`${option.hint}. ${sentence(rangeInWords(option))}; ${option.usual} if left empty`}>
      {(control) => (
        <input
          {...control}
          inputMode={option.isWhole ? "numeric" : "decimal"}
          placeholder={String(option.usual)}
          value={texts[option.name] ?? ""}
          onChange={(event) => onChange({ ...texts, [option.name]: event.target.value })}
        />
      )}
    </Field>
  ));
}
