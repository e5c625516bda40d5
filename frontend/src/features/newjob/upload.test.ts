import { describe, expect, it, vi } from "vitest";
import { ApiError } from "@/shared/api/errors";
import { fileKey, PIECE_BYTES, sendFile, type Memory, type Progress, type Transport } from "./upload";

const dataset = { id: 1, name: "x", rows: 1, columns: ["a"], delimiter: ",", bytes: 1, sha256: "", warnings: [], created_at: "" };
const SIZE = PIECE_BYTES * 2 + 100;
const file = new File([new Uint8Array(SIZE)], "big.csv", { lastModified: 5 });
const away = () => new ApiError(0, "away", "away");

/** A server that keeps what arrives; `fail` may cut any call by throwing. */
function fakeServer(fail: (call: string, count: number) => void = () => undefined) {
  const uploads = new Map<string, number>();
  let count = 0;
  const tick = (call: string) => fail(call, (count += 1));
  const stateOf = (id: string) => {
    const offset = uploads.get(id);
    if (offset === undefined) throw new ApiError(404, "not_found", "gone");
    return { upload_id: id, offset, bytes: SIZE, dataset: offset >= SIZE ? dataset : null };
  };
  const transport: Transport = {
    begin: vi.fn(async () => {
      tick("begin");
      const id = `u${uploads.size}`;
      uploads.set(id, 0);
      return { upload_id: id, offset: 0, bytes: SIZE };
    }),
    look: vi.fn(async (id: string) => {
      tick("look");
      return stateOf(id);
    }),
    add: vi.fn(async (id: string, offset: number, piece: Blob) => {
      if (stateOf(id).offset !== offset) throw new ApiError(409, "wrong_offset", "wrong");
      tick("add");
      uploads.set(id, offset + piece.size);
      tick("added");
      return stateOf(id);
    }),
    drop: vi.fn(async () => undefined),
    pause: vi.fn(async () => undefined),
  };
  return { transport, uploads };
}

function fakeMemory(): Memory & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return { kept, get: (key) => kept.get(key) ?? null, set: (key, id) => kept.set(key, id), forget: (key) => kept.delete(key) };
}

const key = fileKey(1, file);

async function send(server: ReturnType<typeof fakeServer>, memory = fakeMemory(), signal = new AbortController().signal) {
  const seen: Progress[] = [];
  const done = await sendFile(file, { key, transport: server.transport, memory, signal, onProgress: (progress) => seen.push(progress) });
  return { done, seen, memory };
}

describe("sendFile", () => {
  it("sends all pieces in order and forgets the upload at the end", async () => {
    const server = fakeServer();
    const { done, memory } = await send(server);
    expect(done).toEqual(dataset);
    expect(vi.mocked(server.transport.add).mock.calls.map((call) => call[1])).toEqual([0, PIECE_BYTES, 2 * PIECE_BYTES]);
    expect(memory.kept.size).toBe(0);
  });

  it("asks where it stands after a cut and sends no byte twice that arrived", async () => {
    let cuts = 0;
    const server = fakeServer((call) => {
      if (call === "added" && (cuts += 1) === 2) throw away();
    });
    const { done, seen } = await send(server);
    expect(done).toEqual(dataset);
    expect(vi.mocked(server.transport.add).mock.calls.map((call) => call[1])).toEqual([0, PIECE_BYTES, 2 * PIECE_BYTES]);
    expect(seen.some((progress) => progress.step === "waiting")).toBe(true);
  });

  it("gets the dataset when only the last answer was lost", async () => {
    let adds = 0;
    const server = fakeServer((call) => {
      if (call === "added" && (adds += 1) === 3) throw away();
    });
    expect((await send(server)).done).toEqual(dataset);
    expect(server.transport.look).toHaveBeenCalledTimes(1);
  });

  it("goes on after a reload from the byte that arrived last", async () => {
    const server = fakeServer();
    const memory = fakeMemory();
    server.uploads.set("old", PIECE_BYTES);
    memory.set(key, "old");
    await send(server, memory);
    expect(server.transport.begin).not.toHaveBeenCalled();
    expect(vi.mocked(server.transport.add).mock.calls[0]?.[1]).toBe(PIECE_BYTES);
  });

  it("begins again when the server has forgotten the upload", async () => {
    const server = fakeServer();
    const memory = fakeMemory();
    memory.set(key, "swept");
    expect((await send(server, memory)).done).toEqual(dataset);
    expect(server.transport.begin).toHaveBeenCalledTimes(1);
  });

  it("waits while nobody is logged in", async () => {
    let calls = 0;
    const server = fakeServer((call) => {
      if (call === "add" && (calls += 1) === 2) throw new ApiError(401, "not_authenticated", "log in");
    });
    expect((await send(server)).done).toEqual(dataset);
    expect(server.transport.pause).toHaveBeenCalledTimes(1);
  });

  it("gives up on a file that is refused, in the server's words", async () => {
    const server = fakeServer((call) => {
      if (call === "added") throw new ApiError(422, "dataset_refused", "line 3 has 2 fields");
    });
    const memory = fakeMemory();
    await expect(send(server, memory)).rejects.toThrow("line 3 has 2 fields");
    expect(memory.kept.size).toBe(0);
  });

  it("keeps its place when it is paused", async () => {
    const controller = new AbortController();
    const server = fakeServer((call) => {
      if (call === "added") controller.abort();
    });
    const memory = fakeMemory();
    await expect(send(server, memory, controller.signal)).rejects.toMatchObject({ name: "AbortError" });
    expect(memory.kept.get(key)).toBe("u0");
    expect(server.uploads.get("u0")).toBe(PIECE_BYTES);
  });
});
