import { plainName } from "@/shared/format/text";
import { Field } from "@/shared/ui";

interface Props {
  label: string;
  hint: string;
  columns: readonly string[];
  value: string;
  error?: string | undefined;
  onChange: (column: string) => void;
}

/** One of the data's columns. */
export function ColumnField({ label, hint, columns, value, error, onChange }: Props) {
  return (
    <Field label={label} error={error ?? null} hint={columns.length > 0 ? hint : "Choose the data first; its columns are offered here then"}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">Choose a column</option>
          {value && !columns.includes(value) && <option value={value}>{shown(value)} (not in these data)</option>}
          {[...new Set(columns)].filter(Boolean).map((name) => (
            <option key={name} value={name}>
              {shown(name)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

const shown = (name: string): string => plainName(name).slice(0, 60);
