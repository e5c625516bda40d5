import { Pill, type Mark, type Tone } from "@/shared/ui";
import type { MachineState } from "./hardware";

/** Word, colour and shape of each state; the shapes alone tell them apart. */
export const STATES: Record<MachineState, { word: string; tone: Tone; mark: Mark }> = {
  IDLE: { word: "Idle", tone: "green", mark: "ring" },
  BUSY: { word: "Busy", tone: "amber", mark: "pulse" },
  OFFLINE: { word: "Offline", tone: "grey", mark: "dash" },
};

export function MachineStatePill({ state }: { state: MachineState }) {
  const { word, tone, mark } = STATES[state];
  return (
    <Pill tone={tone} mark={mark}>
      {word}
    </Pill>
  );
}
