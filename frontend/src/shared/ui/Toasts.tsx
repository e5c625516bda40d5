import { signal, useSignal } from "@/shared/api/signal";
import styles from "./Feedback.module.css";

interface Said {
  id: number;
  text: string;
}

const said = signal<readonly Said[]>([]);
let last = 0;

/** Say in passing that something was done; read out, gone after some seconds. Errors belong beside what failed instead. */
export function toast(text: string): void {
  last += 1;
  const id = last;
  said.set([...said.get().slice(-2), { id, text }]);
  setTimeout(() => dismiss(id), 6000);
}

function dismiss(id: number): void {
  said.set(said.get().filter((item) => item.id !== id));
}

/** Once, in the app's root. */
export function Toasts() {
  return (
    <div className={styles.toasts} role="status" aria-live="polite">
      {useSignal(said).map((item) => (
        <div key={item.id} className={styles.toast}>
          <span>{item.text}</span>
          <button type="button" aria-label="Dismiss" onClick={() => dismiss(item.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
