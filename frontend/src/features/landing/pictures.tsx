import styles from "./Landing.module.css";

const MACHINES = [
  [70, 60, 0],
  [330, 52, 0.7],
  [372, 190, 1.4],
  [282, 296, 2.1],
  [116, 300, 2.8],
  [30, 182, 3.5],
] as const;

/** Machines around one model; what they learn travels in. */
export function HeroPicture() {
  return (
    <svg viewBox="0 0 400 350" className={styles.heroPicture} aria-hidden="true">
      {MACHINES.map(([x, y, delay]) => (
        <g key={`${x}`}>
          <path d={`M${x} ${y}L200 175`} className={styles.wire} />
          <circle r="4.5" className={styles.spark} style={{ offsetPath: `path("M${x} ${y}L200 175")`, animationDelay: `${delay}s` }} />
          <Machine x={x} y={y} />
        </g>
      ))}
      <circle cx="200" cy="175" r="58" className={styles.halo} />
      <circle cx="200" cy="175" r="40" className={styles.core} />
      <path d="M182 187c6-2 8-14 14-18s10-2 22-8" className={styles.curve} />
      <path d="M180 192h40M180 192v-34" className={styles.axis} />
    </svg>
  );
}

function Machine({ x, y, isOn = true }: { x: number; y: number; isOn?: boolean }) {
  return (
    <g transform={`translate(${x - 26} ${y - 20})`}>
      <rect width="52" height="34" rx="5" className={styles.box} />
      <path d="M18 40h16M26 34v6" className={styles.stand} />
      <path d="M9 24l8-7 7 4 9-10 10 6" className={isOn ? styles.line : styles.flat} />
    </g>
  );
}

/** One table, three chunks. */
export function DealPicture() {
  return (
    <svg viewBox="0 0 280 150" className={styles.picture} aria-hidden="true">
      <rect x="18" y="22" width="84" height="106" rx="6" className={styles.box} />
      {[38, 54, 70, 86, 102].map((y, index) => (
        <path key={y} d={`M28 ${y + 6}h64`} className={[styles.rowA, styles.rowB, styles.rowC, styles.rowA, styles.rowB][index]} />
      ))}
      {[24, 62, 100].map((y, index) => (
        <g key={y}>
          <path d={`M106 75C150 75 150 ${y + 13} 184 ${y + 13}`} className={styles.wire} />
          <rect x="188" y={y} width="74" height="27" rx="5" className={styles.box} />
          <path d={`M198 ${y + 9}h54M198 ${y + 18}h54`} className={[styles.rowA, styles.rowB, styles.rowC][index]} />
        </g>
      ))}
    </svg>
  );
}

/** A machine, and the wall around the script. */
export function TrainPicture() {
  return (
    <svg viewBox="0 0 280 150" className={styles.picture} aria-hidden="true">
      <rect x="62" y="14" width="156" height="106" rx="9" className={styles.box} />
      <path d="M118 136h44M140 120v16" className={styles.stand} />
      <rect x="78" y="29" width="124" height="76" rx="6" className={styles.wall} />
      <path d="M92 94c20-2 24-38 48-44s32-4 48-8" className={styles.line} />
      <path d="M92 52h30M92 62h22" className={styles.rowA} />
      <path d="M22 66h28M230 66h28M26 60l-7 6 7 6M254 60l7 6-7 6" className={styles.cut} />
      <path d="m30 54 12 24m196-24 12 24" className={styles.no} />
    </svg>
  );
}

/** Three updates, one model. */
export function MergePicture() {
  return (
    <svg viewBox="0 0 280 150" className={styles.picture} aria-hidden="true">
      {[24, 62, 100].map((y, index) => (
        <g key={y}>
          <rect x="18" y={y} width="62" height="27" rx="5" className={styles.box} />
          <path d={["M28 40l10-7 9 5 8-8 15 4", "M28 80l12-8 8 3 9-9 13 5", "M28 118l9-4 10 3 9-10 14 4"][index]} className={styles.line} />
          <path d={`M84 ${y + 13}C120 ${y + 13} 120 75 150 75`} className={styles.wire} />
        </g>
      ))}
      <circle cx="196" cy="75" r="44" className={styles.halo} />
      <circle cx="196" cy="75" r="30" className={styles.core} />
      <path d="m183 76 9 9 18-20" className={styles.check} />
    </svg>
  );
}
