import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { useEffect, useMemo, useRef, useState, type PointerEvent } from "react";
import { metric } from "@/shared/format/numbers";
import { domainOf, nearest, tableOf, wholeTicks, type Series } from "./chartData";
import { cx } from "./cx";
import styles from "./LineChart.module.css";

export type { Series } from "./chartData";

interface LineChartProps {
  /** What it shows, for those who do not see it. */
  label: string;
  /** Faint ones are drawn below the others and are not in the legend one by one. */
  series: readonly Series[];
  xLabel: string;
  height?: number;
  /** Fixed ends of the x axis, such as [1, rounds]. */
  xDomain?: readonly [number, number];
  /** Ends that the y axis has at least, such as [0, 1]. */
  yDomain?: readonly [number, number];
  format?: (value: number) => string;
  xFormat?: (value: number) => string;
  /** Name of all faint series together in the legend. */
  faintName?: string;
}

const LEFT = 46;
const RIGHT = 18;
const TOP = 12;
const BOTTOM = 26;

export function LineChart({ label, series, xLabel, height = 240, xDomain, yDomain, format = metric, xFormat = String, faintName }: LineChartProps) {
  const [box, width] = useWidth();
  const [hovered, setHovered] = useState<number | null>(null);
  const xEnds = xDomain ?? domainOf(series, 0);
  const yEnds = domainOf(series, 1, yDomain);
  const x = scaleLinear([...xEnds], [LEFT, Math.max(LEFT + 1, width - RIGHT)]);
  const y = scaleLinear([...yEnds], [height - BOTTOM, TOP]).nice(4);
  const drawn = useMemo(() => series.toSorted((a, b) => Number(b.isFaint ?? false) - Number(a.isFaint ?? false)), [series]);
  const path = line<readonly [number, number]>((point) => x(point[0]), (point) => y(point[1]));
  const bold = series.filter((item) => !item.isFaint);
  const at = hovered === null ? null : nearest(series, hovered);

  const onMove = (event: PointerEvent<SVGSVGElement>) => {
    const left = event.currentTarget.getBoundingClientRect().left;
    setHovered(x.invert(event.clientX - left));
  };

  return (
    <figure className={styles.chart}>
      <Legend series={series} faintName={faintName} />
      <div ref={box} className={styles.box} style={{ height }}>
        <svg width={width} height={height} role="img" aria-label={label} onPointerMove={onMove} onPointerLeave={() => setHovered(null)}>
          {y.ticks(4).map((tick) => (
            <g key={tick}>
              <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} className={styles.grid} />
              <text x={LEFT - 8} y={y(tick)} dy="0.32em" textAnchor="end">
                {format(tick)}
              </text>
            </g>
          ))}
          {wholeTicks(x.domain() as [number, number], Math.max(2, Math.floor(width / 90))).map((tick) => (
            <text key={tick} x={x(tick)} y={height - 8} textAnchor="middle">
              {xFormat(tick)}
            </text>
          ))}
          {drawn.map((item) => (
            <g key={item.id} className={cx(styles[item.tone ?? "faint"], item.isFaint && styles.thin, item.isDashed && styles.dashed)}>
              {item.points.length > 1 && <path d={path(item.points) ?? ""} />}
              {(item.points.length === 1 || !item.isFaint) && <Last item={item} x={x} y={y} />}
              {item.mark && <Marked item={item} mark={item.mark} x={x} y={y} width={width} format={format} />}
            </g>
          ))}
          {at !== null && <line x1={x(at)} x2={x(at)} y1={TOP} y2={height - BOTTOM} className={styles.cursor} />}
          {at !== null && bold.map((item) => <Dot key={item.id} item={item} at={at} x={x} y={y} />)}
        </svg>
        {at !== null && (
          <div className={cx(styles.tip, x(at) > width * 0.6 && styles.tipLeft)} style={{ left: x(at) }}>
            <b>
              {xLabel} {xFormat(at)}
            </b>
            {[...bold, ...series.filter((item) => item.isFaint)].slice(0, 10).map((item) => {
              const point = item.points.find((one) => one[0] === at);
              return point && <Row key={item.id} name={item.name} tone={item.tone ?? "faint"} value={format(point[1])} />;
            })}
          </div>
        )}
      </div>
      <DataTable series={series} label={label} xLabel={xLabel} format={format} xFormat={xFormat} />
    </figure>
  );
}

type Scale = (value: number) => number;

function Last({ item, x, y }: { item: Series; x: Scale; y: Scale }) {
  const point = item.points.at(-1);
  return point ? <circle cx={x(point[0])} cy={y(point[1])} r={item.isFaint ? 2 : 3.5} className={styles.dot} /> : null;
}

/** A ring around the point, and its value above it; left of it where the chart ends. */
function Marked({ item, mark, x, y, width, format }: { item: Series; mark: { x: number; name: string }; x: Scale; y: Scale; width: number; format: (value: number) => string }) {
  const point = item.points.find((one) => one[0] === mark.x);
  if (!point) return null;
  const [left, top] = [x(point[0]), y(point[1])];
  const anchor = left > width - 70 ? "end" : left < LEFT + 40 ? "start" : "middle";
  return (
    <>
      <circle cx={left} cy={top} r={6.5} className={styles.ring} />
      <text x={left} y={top < TOP + 16 ? top + 22 : top - 12} textAnchor={anchor} className={styles.marked}>
        {mark.name} {format(point[1])}
      </text>
    </>
  );
}

function Dot({ item, at, x, y }: { item: Series; at: number; x: Scale; y: Scale }) {
  const point = item.points.find((one) => one[0] === at);
  return point ? <circle cx={x(point[0])} cy={y(point[1])} r={4} className={cx(styles.dot, styles[item.tone ?? "faint"])} /> : null;
}

function Row({ name, tone, value }: { name: string; tone: string; value: string }) {
  return (
    <span className={styles.row}>
      <i className={styles[tone]} />
      <bdi>{name}</bdi>
      <em>{value}</em>
    </span>
  );
}

function Legend({ series, faintName }: { series: readonly Series[]; faintName: string | undefined }) {
  const bold = series.filter((item) => !item.isFaint);
  const hasFaint = faintName !== undefined && series.some((item) => item.isFaint);
  if (bold.length + Number(hasFaint) < 2) return null;
  return (
    <figcaption className={styles.legend}>
      {bold.map((item) => (
        <span key={item.id}>
          <i className={cx(styles[item.tone ?? "faint"], item.isDashed && styles.dashedKey)} />
          <bdi>{item.name}</bdi>
        </span>
      ))}
      {hasFaint && (
        <span>
          <i className={styles.faint} />
          {faintName}
        </span>
      )}
    </figcaption>
  );
}

type DataTableProps = Required<Pick<LineChartProps, "series" | "label" | "xLabel" | "format" | "xFormat">>;

/** The same numbers for those who do not see the picture. */
function DataTable({ series, label, xLabel, format, xFormat }: DataTableProps) {
  const table = useMemo(() => tableOf(series), [series]);
  return (
    <div className="visually-hidden">
      <table>
        <caption>{table.isCut ? `${label}; the latest ${table.rows.length} values` : label}</caption>
        <thead>
          <tr>
            <th scope="col">{xLabel}</th>
            {table.names.map((column) => (
              <th scope="col" key={column.id}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row.x}>
              <th scope="row">{xFormat(row.x)}</th>
              {row.values.map((value, index) => (
                <td key={table.names[index]?.id}>
                  {value === null ? "no value" : format(value)}
                  {table.names[index]?.mark?.x === row.x && ` (${table.names[index].mark.name})`}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.max(120, Math.floor(entry.contentRect.width)));
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, width] as const;
}
