import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiError } from "@/shared/api/errors";
import { useMe } from "@/shared/api/session";
import { readStart, type CsvStart } from "./csv";
import type { Dataset } from "./draft";
import { browserMemory, browserTransport } from "./transport";
import { fileKey, sendFile, type Progress } from "./upload";

export type UploadView =
  | { step: "none" }
  | { step: "going"; name: string; progress: Progress; perSecond: number | null }
  | { step: "paused"; name: string; sent: number; total: number }
  | { step: "refused"; name: string; problem: string };

/** One upload at a time: begin, pause, resume, give up. `onDone` gets the dataset. */
export function useUpload(onDone: (dataset: Dataset) => void) {
  const me = useMe();
  const client = useQueryClient();
  const [view, setView] = useState<UploadView>({ step: "none" });
  const [start, setStart] = useState<CsvStart | null>(null);
  const running = useRef<{ file: File; controller: AbortController } | null>(null);

  // Leaving the page pauses: the same file goes on from there when it is chosen again.
  useEffect(() => () => running.current?.controller.abort(), []);

  const go = async (file: File) => {
    running.current?.controller.abort();
    const controller = new AbortController();
    running.current = { file, controller };
    const speed = speedometer();
    let sent = 0;
    const show = (progress: Progress) => {
      sent = progress.step === "checking" ? progress.total : progress.sent;
      const perSecond = progress.step === "sending" ? speed(progress.sent) : null;
      setView({ step: "going", name: file.name, progress, perSecond });
    };
    show({ step: "sending", sent, total: file.size });
    try {
      const options = { key: fileKey(me.id, file), transport: browserTransport, memory: browserMemory, signal: controller.signal, onProgress: show };
      const dataset = await sendFile(file, options);
      setView({ step: "none" });
      running.current = null;
      void client.invalidateQueries({ queryKey: ["datasets"] });
      onDone(dataset);
    } catch (error) {
      if (running.current?.controller !== controller) return;
      if (controller.signal.aborted) setView({ step: "paused", name: file.name, sent, total: file.size });
      else setView({ step: "refused", name: file.name, problem: error instanceof ApiError ? error.message : "this file can no longer be read; choose it again" });
    }
  };

  return {
    view,
    start,
    begin: (file: File) => {
      setStart(null);
      readStart(file).then(setStart, () => setStart(null));
      void go(file);
    },
    pause: () => running.current?.controller.abort(),
    resume: () => running.current && void go(running.current.file),
    giveUp: () => {
      const file = running.current?.file;
      running.current?.controller.abort();
      running.current = null;
      setView({ step: "none" });
      setStart(null);
      if (!file) return;
      const key = fileKey(me.id, file);
      const id = browserMemory.get(key);
      browserMemory.forget(key);
      if (id) browserTransport.drop(id).catch(() => undefined);
    },
    forget: () => {
      setView({ step: "none" });
      setStart(null);
    },
  };
}

/** Bytes a second over the last five seconds or so. */
function speedometer() {
  const seen: { at: number; sent: number }[] = [];
  return (sent: number): number | null => {
    const at = performance.now();
    seen.push({ at, sent });
    while (seen.length > 2 && at - (seen[0]?.at ?? at) > 5000) seen.shift();
    const first = seen[0];
    return first && at - first.at > 800 ? ((sent - first.sent) * 1000) / (at - first.at) : null;
  };
}
