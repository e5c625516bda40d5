import { useId, useRef } from "react";
import { Button } from "@/shared/ui";

/** A button that opens the platform's file dialog. */
export function FilePicker({ label, accept, multiple, onFiles, invalid, describedBy }: {
  label: string;
  accept: string;
  multiple?: boolean;
  onFiles: (files: File[]) => void;
  invalid?: boolean;
  describedBy?: string;
}) {
  const ref = useRef<HTMLInputElement>(null);
  const id = useId();
  return (
    <>
      <input
        ref={ref}
        id={id}
        type="file"
        accept={accept}
        multiple={multiple}
        hidden
        aria-label={label}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <Button onClick={() => ref.current?.click()} aria-invalid={invalid || undefined} aria-describedby={describedBy}>
        {label}
      </Button>
    </>
  );
}
