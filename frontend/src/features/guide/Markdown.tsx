import type { Token, Tokens } from "marked";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { sentence } from "@/shared/format/text";
import { CodeBlock, Table, type Column } from "@/shared/ui";
import styles from "./Guide.module.css";
import { hrefOf, plain, slug, unescaped } from "./read";

/** Tokens as elements. A kind that is not named here is shown as its text. */
export function Markdown({ tokens }: { tokens: readonly Token[] }) {
  return <>{tokens.map((token, index) => block(token, index))}</>;
}

function block(token: Token, key: number): ReactNode {
  switch (token.type) {
    case "space":
    case "html":
      return null;
    case "heading": {
      const { depth, tokens } = token as Tokens.Heading;
      const Tag = depth <= 2 ? "h2" : "h3";
      return (
        <Tag key={key} id={slug(plain(tokens))}>
          {inline(tokens)}
        </Tag>
      );
    }
    case "paragraph":
      return <p key={key}>{inline((token as Tokens.Paragraph).tokens)}</p>;
    case "code":
      return <CodeBlock key={key} text={(token as Tokens.Code).text} label="example" canCopy />;
    case "list":
      return list(token as Tokens.List, key);
    case "table":
      return <DocTable key={key} token={token as Tokens.Table} />;
    case "blockquote":
      return <blockquote key={key}>{(token as Tokens.Blockquote).tokens.map((one, index) => block(one, index))}</blockquote>;
    case "hr":
      return <hr key={key} />;
    default:
      return <p key={key}>{inline([token])}</p>;
  }
}

function list(token: Tokens.List, key: number): ReactNode {
  const items = token.items.map((item, index) => (
    // oxlint-disable-next-line react/no-array-index-key -- the document does not change
    <li key={index}>{item.tokens.map((one, place) => (one.type === "text" || one.type === "paragraph" ? <span key={place}>{inline(inner(one))}</span> : block(one, place)))}</li>
  ));
  return token.ordered ? <ol key={key}>{items}</ol> : <ul key={key}>{items}</ul>;
}

const inner = (token: Token): Token[] => ("tokens" in token && token.tokens ? token.tokens : [token]);

function inline(tokens: readonly Token[]): ReactNode[] {
  return tokens.map((token, key) => {
    switch (token.type) {
      case "strong":
        return <strong key={key}>{inline(inner(token))}</strong>;
      case "em":
        return <em key={key}>{inline(inner(token))}</em>;
      case "codespan":
        return <code key={key}>{(token as Tokens.Codespan).text}</code>;
      case "br":
        return <br key={key} />;
      case "link":
        return link(token as Tokens.Link, key);
      case "html":
        return null;
      default:
        return "tokens" in token && token.tokens ? <span key={key}>{inline(token.tokens)}</span> : unescaped("text" in token ? String(token.text) : token.raw);
    }
  });
}

function link(token: Tokens.Link, key: number): ReactNode {
  const href = hrefOf(token.href);
  const words = inline(token.tokens);
  if (href === null) return <span key={key}>{words}</span>;
  if (href.startsWith("/")) {
    return (
      <Link key={key} to={href}>
        {words}
      </Link>
    );
  }
  return (
    <a key={key} href={href} rel="noreferrer">
      {words}
    </a>
  );
}

/** Tables become cards on a phone like every other table of the app; the first column is their title. */
function DocTable({ token }: { token: Tokens.Table }) {
  const columns: Column<number>[] = token.header.map((cell, index) => ({
    key: String(index),
    header: sentence(plain(cell.tokens)),
    isTitle: index === 0,
    cell: (row) => inline(token.rows[row]?.[index]?.tokens ?? []),
  }));
  return (
    <div className={styles.table}>
      <Table caption={token.header.map((cell) => plain(cell.tokens)).join(", ")} columns={columns} rows={token.rows.map((_, index) => index)} rowKey={(row) => row} />
    </div>
  );
}
