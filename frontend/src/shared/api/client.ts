import createClient, { type Middleware } from "openapi-fetch";
import { ApiError, AWAY, errorOf } from "./errors";
import type { paths } from "./schema";
import { signal } from "./signal";

export const API_URL: string = (import.meta.env.VITE_API_URL as string | undefined) ?? "";

/** Whether the last answer came from the server. The banner follows it. */
export const isServerAway = signal(false);
/** Raised by a 401 on a page that was logged in; the page stays as it is and asks for the password over it. */
export const isSessionOver = signal(false);

/** fetch for everything that goes to the server: notices when it is away and when the session has ended. */
export async function send(request: Request): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    isServerAway.set(true);
    throw new ApiError(0, "away", AWAY);
  }
  observe(response.status, response.status === 401 ? errorOf(response, await said(response)).code : "", new URL(request.url).pathname);
  return response;
}

const said = (response: Response): Promise<unknown> => response.clone().json().catch(() => null);

/** Also called by uploads, which need XMLHttpRequest for their progress. */
export function observe(status: number, code: string, path: string): void {
  isServerAway.set(status === 502 || status === 504);
  // A wrong password says nothing about the session, and /auth/me is asked to find out.
  if (status === 401 && code !== "wrong_credentials" && path !== "/auth/me") isSessionOver.set(true);
}

const refusals: Middleware = {
  async onResponse({ response }) {
    if (response.ok) return;
    throw errorOf(response, await said(response));
  },
};

export const api = createClient<paths>({ baseUrl: API_URL || globalThis.location.origin, credentials: "same-origin", fetch: send });
api.use(refusals);

/** The answer's body. Refusals were thrown as ApiError already. */
export async function body<T>(call: Promise<{ data?: T }>): Promise<T> {
  return (await call).data as T;
}

/** A signed link of the server as this page can open it. */
export function linkTo(url: string): string {
  return url.startsWith("/") ? API_URL + url : url;
}
