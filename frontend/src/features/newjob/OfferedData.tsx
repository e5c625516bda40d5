import { OFFERED } from "@/shared/learning/recipes";
import { Choices } from "@/shared/ui";
import type { Draft } from "./draft";
import styles from "./NewJob.module.css";

/** The server's own datasets beside a table of one's own. */
export function OfferedData({ draft, update }: { draft: Draft; update: (change: Partial<Draft>) => void }) {
  return (
    <div className={styles.offered}>
      <Choices
        legend="What it learns from"
        name="offered"
        isWide
        value={draft.offered}
        options={[{ value: "", label: "A table of your own", hint: "A CSV with a header, and one column that is to be predicted" }, ...OFFERED.map(({ name, label, what }) => ({ value: name, label, hint: what }))]}
        onChange={(offered) => update({ offered })}
      />
    </div>
  );
}
