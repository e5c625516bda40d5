import { useEffect } from "react";
import { Link, Navigate, useLocation, useParams } from "react-router";
import { isBuyer, useMe } from "@/shared/api/session";
import { ButtonAnchor, cx, PageHeader } from "@/shared/ui";
import styles from "./Guide.module.css";
import { Markdown } from "./Markdown";
import { PARTS } from "./parts";

/** The training contract and the providers' guide, each under an address of its own. */
export function GuidePage() {
  const me = useMe();
  const { part } = useParams();
  const { hash } = useLocation();
  const shown = PARTS.find((one) => one.name === part);
  // On a reload the place that the address names is not there yet when the browser looks for it.
  useEffect(() => {
    if (hash) document.getElementById(hash.slice(1))?.scrollIntoView();
  }, [hash]);
  if (!shown) return <Navigate to={`/app/guide/${isBuyer(me) ? "contract" : "providers"}`} replace />;
  return (
    <>
      <PageHeader title="Guide" name={shown.title} actions={<ButtonAnchor href="/docs">API reference</ButtonAnchor>} />
      <nav className={styles.parts} aria-label="Parts of the guide">
        {PARTS.map((one) => (
          <Link key={one.name} to={`/app/guide/${one.name}`} className={cx(one === shown && styles.on)} aria-current={one === shown ? "page" : undefined}>
            <b>{one.title}</b>
            <span>{one.forWhom}</span>
          </Link>
        ))}
      </nav>
      <div className={styles.body}>
        <nav className={styles.contents} aria-label="On this page">
          <h2>On this page</h2>
          <ul>
            {shown.page.sections.map((section) => (
              <li key={section.id}>
                <a href={`#${section.id}`}>{section.title}</a>
              </li>
            ))}
          </ul>
        </nav>
        <article key={shown.name} className={styles.text}>
          <Markdown tokens={shown.page.tokens} />
        </article>
      </div>
    </>
  );
}
