import type { ReactNode } from "react";
import { plainName } from "@/shared/format/text";
import styles from "./Bits.module.css";
import { cx } from "./cx";
import type { Tone } from "./Pill";

/** Text that somebody else wrote: isolated, wrapped, cut when very long (whole on hover). */
export function Plain({ children, max = 160 }: { children: string; max?: number }) {
  const text = plainName(children);
  const isCut = text.length > max;
  return (
    <bdi className={styles.plain} title={isCut ? text.slice(0, 2000) : undefined}>
      {isCut ? `${text.slice(0, max)}…` : text}
    </bdi>
  );
}

/** A bar. `value` from 0 to 1; null when only known to be going on. */
export function Progress({ value, label, tone = "green" }: { value: number | null; label: string; tone?: Tone }) {
  const share = value === null ? null : Math.min(1, Math.max(0, value));
  return (
    <div
      className={cx(styles.bar, styles[tone])}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={share === null ? undefined : Math.round(share * 100)}
    >
      <div className={cx(styles.fill, share === null && styles.unknown)} style={{ transform: share === null ? undefined : `scaleX(${share})` }} />
    </div>
  );
}

/** Names and values, aligned. */
export function Facts({ items }: { items: readonly (readonly [label: ReactNode, value: ReactNode])[] }) {
  return (
    <dl className={styles.facts}>
      {items.map(([label, value], index) => (
        // oxlint-disable-next-line react/no-array-index-key -- the list is fixed
        <div key={index}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** One large number with its name. */
export function Stat({ label, value, note }: { label: ReactNode; value: ReactNode; note?: ReactNode }) {
  return (
    <div className={styles.stat}>
      <span>{label}</span>
      <b>{value}</b>
      {note && <small>{note}</small>}
    </div>
  );
}

/** A grid that holds Stats, Cards: as many columns as fit. `min` is the narrowest column. */
export function Grid({ min = "240px", children }: { min?: string; children: ReactNode }) {
  return (
    <div className={styles.grid} style={{ gridTemplateColumns: `repeat(auto-fit, minmax(min(100%, ${min}), 1fr))` }}>
      {children}
    </div>
  );
}

/** Blocks below each other with the page's distance. */
export function Stack({ children }: { children: ReactNode }) {
  return <div className={styles.stack}>{children}</div>;
}

/** A page's head: title of the window and of the page, where one is, what can be done. */
export function PageHeader({ title, name, crumb, meta, actions }: {
  title: ReactNode;
  /** The window's title, where `title` is no string. */
  name?: string;
  crumb?: ReactNode;
  meta?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <header className={styles.head}>
      <title>{`${name ?? (typeof title === "string" ? title : "Grid-X")} · Grid-X`}</title>
      <div className={styles.titles}>
        {crumb && <div className={styles.crumb}>{crumb}</div>}
        <h1>{title}</h1>
        {meta && <div className={styles.meta}>{meta}</div>}
      </div>
      {actions && <div className={styles.actions}>{actions}</div>}
    </header>
  );
}
