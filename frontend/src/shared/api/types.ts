import type { components } from "./schema";

/** A body of the API by its name in the schema: `Body<"JobView">`. */
export type Body<Name extends keyof components["schemas"]> = components["schemas"][Name];
