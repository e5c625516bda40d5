import { ApiError } from "@/shared/api/errors";
import type { Body } from "@/shared/api/types";

export type UploadState = Body<"UploadOut">;

/** What an upload says to the server. */
export interface Transport {
  begin: (name: string, bytes: number) => Promise<UploadState>;
  look: (id: string) => Promise<UploadState>;
  /** Add a piece at an offset; reports the bytes of it that have left. */
  add: (id: string, offset: number, piece: Blob, onSent: (bytes: number) => void, signal: AbortSignal) => Promise<UploadState>;
  drop: (id: string) => Promise<void>;
  /** Waits until asking again makes sense: some seconds, and until somebody is logged in. */
  pause: (attempt: number, signal: AbortSignal) => Promise<void>;
}

/** Ids of uploads that were begun, by file; kept over reloads. */
export interface Memory {
  get: (key: string) => string | null;
  set: (key: string, id: string) => void;
  forget: (key: string) => void;
}

export type Progress =
  | { step: "sending"; sent: number; total: number }
  | { step: "waiting"; sent: number; total: number; why: string }
  | { step: "checking"; total: number };

export const PIECE_BYTES = 8 * 1024 * 1024;

export const fileKey = (userId: number, file: File): string => `gridx-upload:${userId}:${file.size}:${file.lastModified}:${file.name}`;

/**
 * Send a file piece by piece and return its dataset. Goes on by itself after a cut, a server restart or a new login, from the byte that
 * arrived last; also after a reload, when the same file is chosen again. Aborting the signal pauses it.
 *
 * @throws ApiError when the server refuses the file; DOMException AbortError when paused.
 */
export async function sendFile(
  file: File,
  options: { key: string; transport: Transport; memory: Memory; signal: AbortSignal; onProgress: (progress: Progress) => void },
): Promise<Body<"DatasetOut">> {
  const { key, transport, memory, signal, onProgress } = options;
  const total = file.size;
  let id = memory.get(key);
  let offset = 0;
  let attempt = 0;
  let mustLook = id !== null;
  for (;;) {
    signal.throwIfAborted();
    try {
      let state: UploadState;
      if (id === null) {
        state = await transport.begin(file.name || "data.csv", total);
        id = state.upload_id;
        memory.set(key, id);
      } else if (mustLook) {
        state = await transport.look(id);
        mustLook = false;
      } else {
        const start = offset;
        const piece = file.slice(start, start + PIECE_BYTES);
        const isLast = start + piece.size >= total;
        onProgress({ step: "sending", sent: start, total });
        const onSent = (bytes: number) => {
          if (isLast && bytes >= piece.size) onProgress({ step: "checking", total });
          else onProgress({ step: "sending", sent: start + bytes, total });
        };
        state = await transport.add(id, start, piece, onSent, signal);
      }
      attempt = 0;
      offset = state.offset;
      if (state.dataset) {
        memory.forget(key);
        return state.dataset;
      }
      if (offset >= total) mustLook = true;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404 && id !== null) {
        // It was swept, or the server has forgotten it: begin again.
        memory.forget(key);
        id = null;
        offset = 0;
        continue;
      }
      if (!mayGoOn(error)) {
        memory.forget(key);
        throw error;
      }
      mustLook = id !== null;
      attempt += 1;
      if (error.code !== "wrong_offset") {
        onProgress({ step: "waiting", sent: offset, total, why: error.status === 401 ? "waiting for you to log in" : "the connection was cut; it goes on by itself" });
        await transport.pause(attempt, signal);
      }
    }
  }
}

const mayGoOn = (error: ApiError): boolean => error.isPassing || error.status === 401 || error.code === "wrong_offset" || error.code === "upload_busy";
