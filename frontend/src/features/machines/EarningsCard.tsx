import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useMemo } from "react";
import { count, plural } from "@/shared/format/numbers";
import { Card, LineChart, QueryView, useNow, type Series } from "@/shared/ui";
import { earningsOf, type Earnings } from "./earnings";
import styles from "./Machines.module.css";
import { movementsQuery } from "./queries";

/** What the machines earned, added up; it moves on with the clock every minute. */
export function useEarnings(userId: number) {
  const query = useQuery(movementsQuery(userId));
  const minute = Math.floor(useNow().getTime() / 60_000);
  const data = useMemo(() => query.data && earningsOf(query.data, new Date((minute + 1) * 60_000)), [query.data, minute]);
  return { ...query, data } as UseQueryResult<Earnings>;
}

const UNITS = { minute: "Time", hour: "Hour", day: "Day" } as const;

export function EarningsCard({ earnings }: { earnings: UseQueryResult<Earnings> }) {
  return (
    <Card title="Earnings" note={earnings.data && earnings.data.total > 0 ? `${plural(earnings.data.total, "credit")} in all` : undefined}>
      <QueryView query={earnings} what="what your machines earned">
        {(data) => (data.points.length === 0 ? <Nothing /> : <Chart earnings={data} />)}
      </QueryView>
    </Card>
  );
}

function Chart({ earnings }: { earnings: Earnings }) {
  const series: Series[] = [{ id: "earned", name: "earned", tone: "green", points: earnings.points }];
  return (
    <LineChart
      label="Credits that your machines earned, added up over time"
      series={series}
      xLabel={UNITS[earnings.unit]}
      xFormat={earnings.nameOf}
      yDomain={[0, 4]}
      format={count}
      height={220}
    />
  );
}

function Nothing() {
  return <p className={styles.faint}>Nothing yet. A credit arrives for every hour of a job’s time limit, once the server has verified what a machine trained.</p>;
}
