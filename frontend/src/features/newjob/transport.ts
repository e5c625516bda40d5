import { api, API_URL, body, isServerAway, isSessionOver, observe } from "@/shared/api/client";
import { ApiError, AWAY, errorOf } from "@/shared/api/errors";
import type { Memory, Transport, UploadState } from "./upload";

export const browserMemory: Memory = {
  get: (key) => localStorage.getItem(key),
  set: (key, id) => localStorage.setItem(key, id),
  forget: (key) => localStorage.removeItem(key),
};

export const browserTransport: Transport = {
  begin: (name, bytes) => body(api.POST("/datasets/uploads", { body: { name: name.slice(0, 200), bytes } })),
  look: (id) => body(api.GET("/datasets/uploads/{upload_id}", { params: { path: { upload_id: id } } })),
  drop: async (id) => {
    await api.DELETE("/datasets/uploads/{upload_id}", { params: { path: { upload_id: id } } });
  },
  add: addPiece,
  pause: async (attempt, signal) => {
    const end = Date.now() + Math.min(1000 * 2 ** (attempt - 1), 8000);
    while (Date.now() < end || isServerAway.get() || isSessionOver.get()) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      signal.throwIfAborted();
    }
  },
};

/** XMLHttpRequest, because fetch says nothing about how much has left. */
function addPiece(id: string, offset: number, piece: Blob, onSent: (bytes: number) => void, signal: AbortSignal): Promise<UploadState> {
  const path = `/datasets/uploads/${encodeURIComponent(id)}`;
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    signal.addEventListener("abort", abort);
    request.open("PATCH", API_URL + path);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("Upload-Offset", String(offset));
    request.upload.addEventListener("progress", (event) => onSent(event.loaded));
    request.addEventListener("loadend", () => {
      signal.removeEventListener("abort", abort);
      if (request.status === 0) {
        if (!signal.aborted) isServerAway.set(true);
        reject(signal.aborted ? (signal.reason as Error) : new ApiError(0, "away", AWAY));
        return;
      }
      const answer: unknown = parsed(request.responseText);
      const error = errorOf(new Response(null, { status: request.status, headers: headersOf(request) }), answer);
      observe(request.status, error.code, path);
      if (request.status < 300) resolve(answer as UploadState);
      else reject(error);
    });
    request.send(piece);
  });
}

function headersOf(request: XMLHttpRequest): HeadersInit {
  const after = request.getResponseHeader("Retry-After");
  return after ? { "Retry-After": after } : {};
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
