import providers from "../../../../docs/providers.md?raw";
import contract from "../../../../docs/training-contract.md?raw";
import { read } from "./read";

/** The guide's parts are the repository's own documents, taken in when the app is built. */
export const PARTS = [
  { name: "contract", title: "Training contract", forWhom: "for buyers: what a script may rely on, and what it has to do", page: read(contract) },
  { name: "providers", title: "Lending a machine", forWhom: "for sellers: set-up, settings, safety", page: read(providers) },
] as const;

export type Part = (typeof PARTS)[number];
