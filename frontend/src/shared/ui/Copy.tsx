import { useState } from "react";
import { plainLog } from "@/shared/format/text";
import styles from "./Copy.module.css";
import { toast } from "./Toasts";

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Plain http from another machine: the browser offers no clipboard there.
    toast("The browser does not allow copying here; select the text and copy it by hand");
    return false;
  }
}

function CopyButton({ value, label }: { value: string; label: string }) {
  const [isDone, setIsDone] = useState(false);
  const onClick = async () => {
    if (!(await copy(value))) return;
    setIsDone(true);
    setTimeout(() => setIsDone(false), 2000);
  };
  return (
    <button type="button" className={styles.copy} onClick={() => void onClick()} aria-label={isDone ? `${label}: copied` : `Copy ${label}`}>
      {isDone ? "Copied" : "Copy"}
    </button>
  );
}

/** An id in full with a button that copies it; `shown` is a shorter form. */
export function CopyId({ value, label, shown }: { value: string; label: string; shown?: string }) {
  return (
    <span className={styles.id}>
      <code title={value}>{shown ?? value}</code>
      <CopyButton value={value} label={label} />
    </span>
  );
}

/** Commands, output: as it is, without terminal codes. */
export function CodeBlock({ text, label, canCopy = false, maxHeight }: { text: string; label: string; canCopy?: boolean; maxHeight?: string }) {
  return (
    <div className={styles.block}>
      {canCopy && <CopyButton value={text} label={label} />}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it */}
      <pre tabIndex={0} role="group" aria-label={label} dir="ltr" style={{ maxHeight }}>
        {plainLog(text)}
      </pre>
    </div>
  );
}
