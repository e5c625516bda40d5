import type { Body } from "@/shared/api/types";

/** What a machine says about itself; the schema leaves it open. */
export interface Hardware {
  cores?: number;
  ram_bytes?: number;
  gpu_count?: number;
  gpu_name?: string | null;
  vram_bytes?: number;
}

/** Whether a machine has what a job asks for, by the server's own rule. */
export function meets(hardware: Hardware, needs: Body<"Needs">): boolean {
  return (
    (hardware.ram_bytes ?? 0) >= (needs.ram_bytes ?? 0) &&
    (hardware.gpu_count ?? 0) >= (needs.gpu ? 1 : 0) &&
    (hardware.vram_bytes ?? 0) >= (needs.vram_bytes ?? 0)
  );
}
