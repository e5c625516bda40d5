/** What the server refused, in its own words, or that it could not be reached (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfterS: number | null;

  constructor(status: number, code: string, detail: string, retryAfterS: number | null = null) {
    super(detail);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.retryAfterS = retryAfterS;
  }

  /** Whether asking again later may help without anything being changed. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export const AWAY = "the server cannot be reached; this page goes on by itself once it is back";

export function errorOf(response: Response, body: unknown): ApiError {
  const { code, detail } = (typeof body === "object" && body !== null ? body : {}) as { code?: unknown; detail?: unknown };
  const words = typeof detail === "string" ? detail : `the server answered ${response.status} without saying why`;
  const after = Number(response.headers.get("Retry-After") ?? "");
  return new ApiError(response.status, typeof code === "string" ? code : "unknown", words, after > 0 ? after : null);
}

/** `email: is no address; password: too short` by field. A message about no known field stands under "". */
export function fieldErrors(error: unknown, fields: readonly string[]): Record<string, string> {
  if (!(error instanceof Error)) return {};
  const found: Record<string, string> = {};
  for (const part of error.message.split("; ")) {
    const [, name, words] = /^([\w.]+): (.*)$/s.exec(part) ?? [];
    const field = name !== undefined && fields.includes(name) ? name : "";
    const said = field === "" ? part : (words ?? "");
    found[field] = found[field] === undefined ? said : `${found[field]}; ${said}`;
  }
  return found;
}
