import { describe, expect, test } from "vitest";
import { gpuLine, hardwareLine, hardwareOf, isolationOf, type Machine } from "./hardware";

const machine = (hardware: Machine["hardware"], isolation = "docker"): Machine => ({
  id: "a",
  status: "IDLE",
  hardware,
  isolation,
  registered_at: "2030-01-01T00:00:00Z",
  last_seen_at: "2030-01-01T00:00:00Z",
  tasks_completed: 0,
  current_task: null,
  hostname: null,
  accepts: "all",
  paused: null,
  quarantined_until: null,
  quarantine_reason: null,
  doctor: null,
});

describe("what a machine says about itself", () => {
  test("one line", () => {
    expect(hardwareLine(machine({ cores: 8, ram_bytes: 2 ** 35, gpu_count: 0 }))).toBe("8 cores · 32.0 GiB");
    expect(hardwareLine(machine({ cores: 1, ram_bytes: 2 ** 30, gpu_count: 2, gpu_name: "RTX 4090" }))).toBe("1 core · 1.0 GiB · 2 × RTX 4090");
  });

  test("nonsense is unknown, never shown as it came", () => {
    expect(hardwareLine(machine({ cores: "many", ram_bytes: null, gpu_count: {} }))).toBe("unknown");
    expect(hardwareOf(machine({ os: ["x"], python_version: 3 }))).toMatchObject({ os: null, python: null, gpuCount: 0 });
  });

  test("a GPU without a name", () => {
    expect(gpuLine(machine({ gpu_count: 1 }))).toBe("GPU");
    expect(gpuLine(machine({}))).toBe("none");
  });

  test("isolation in words", () => {
    expect(isolationOf(machine({}, "docker+runsc"))).toMatchObject({ name: "Docker with gVisor", isWalled: true });
    expect(isolationOf(machine({}, "process")).isWalled).toBe(false);
    expect(isolationOf(machine({}, "something new"))).toMatchObject({ name: "something new", isWalled: false });
  });
});
