import type { ReactNode } from "react";
import { Brand } from "@/shared/ui";
import styles from "./Auth.module.css";

export function AuthShell({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={styles.shell}>
      <title>{`${title} · Grid-X`}</title>
      <header>
        <Brand to="/" />
      </header>
      <main>
        <h1>{title}</h1>
        {children}
      </main>
    </div>
  );
}
