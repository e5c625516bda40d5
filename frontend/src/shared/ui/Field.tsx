import { useId, type ReactNode } from "react";
import { cx } from "./cx";
import styles from "./Field.module.css";

export interface ControlProps {
  id: string;
  className: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | null;
  /** `<Field label="Title">{(control) => <input {...control} />}</Field>` */
  children: (control: ControlProps) => ReactNode;
}

/** A labelled control; its hint and its error stand beside it and are read with it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, className: styles.control ?? "", "aria-describedby": described || undefined, "aria-invalid": error ? true : undefined })}
      {error && (
        <p id={`${id}-error`} className={styles.error}>
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** Choices that exclude each other, as a row of cards. */
export function Choices<Value extends string>({ legend, name, value, options, isWide, onChange }: {
  legend: string;
  name: string;
  value: Value;
  options: readonly { value: Value; label: string; hint?: ReactNode }[];
  /** For hints of a sentence. */
  isWide?: boolean;
  onChange: (value: Value) => void;
}) {
  const id = useId();
  return (
    <fieldset className={cx(styles.choices, isWide && styles.wide)}>
      <legend>{legend}</legend>
      {options.map((option) => (
        <label key={option.value} className={styles.choice}>
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
            aria-labelledby={`${id}-${option.value}`}
            aria-describedby={option.hint ? `${id}-${option.value}-hint` : undefined}
          />
          <span>
            <b id={`${id}-${option.value}`}>{option.label}</b>
            {option.hint && <small id={`${id}-${option.value}-hint`}>{option.hint}</small>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
