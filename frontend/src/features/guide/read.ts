import { lexer, type Token, type Tokens } from "marked";

export interface Section {
  id: string;
  title: string;
}

export interface Page {
  /** The text of the first heading. */
  title: string;
  /** Everything below it. */
  tokens: Token[];
  /** The second-level headings. */
  sections: Section[];
}

/** A document of docs/ as tokens. They are drawn as elements one by one: nothing of it ever becomes HTML by itself. */
export function read(markdown: string): Page {
  const tokens = lexer(markdown);
  const first = tokens.findIndex(isHeading(1));
  const title = first >= 0 ? plain((tokens[first] as Tokens.Heading).tokens) : "";
  const rest = tokens.filter((_, index) => index !== first);
  const sections = rest.filter(isHeading(2)).map((token) => {
    const text = plain((token as Tokens.Heading).tokens);
    return { id: slug(text), title: text };
  });
  return { title, tokens: rest, sections };
}

const isHeading = (depth: number) => (token: Token) => token.type === "heading" && (token as Tokens.Heading).depth === depth;

/** "What you return" -> "what-you-return" */
export const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");

/** The words of tokens without their marks. */
export function plain(tokens: readonly Token[] | undefined): string {
  return (tokens ?? []).map((token) => ("tokens" in token && token.tokens ? plain(token.tokens) : unescaped("text" in token ? String(token.text) : ""))).join("");
}

/** The lexer leaves entities in text as they were written. */
const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };
export const unescaped = (text: string): string => text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity] ?? entity);

/** Where a link may lead: the web, a place on the page, or a document that is a part of the guide itself. */
export function hrefOf(href: string): string | null {
  if (/^https?:\/\//.test(href) || href.startsWith("#")) return href;
  if (/(^|\/)training-contract\.md/.test(href)) return "/app/guide/contract";
  if (/(^|\/)providers\.md/.test(href)) return "/app/guide/providers";
  return null;
}
