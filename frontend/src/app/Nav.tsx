import { useEffect, useRef } from "react";
import { Link, NavLink, useLocation } from "react-router";
import { count } from "@/shared/format/numbers";
import { isBuyer, isSeller, useWallet, type User } from "@/shared/api/session";
import { Brand, cx } from "@/shared/ui";
import styles from "./Nav.module.css";

interface Item {
  to: string;
  name: string;
  isFor?: (user: User) => boolean;
  end?: boolean;
}

const ITEMS: Item[] = [
  { to: "/app/jobs/new", name: "New job", isFor: isBuyer },
  { to: "/app/jobs", name: "Jobs", isFor: isBuyer },
  { to: "/app/datasets", name: "Datasets", isFor: isBuyer },
  { to: "/app/machines", name: "Machines", isFor: isSeller },
  { to: "/app/network", name: "Network" },
  { to: "/app/wallet", name: "Wallet" },
  { to: "/app/guide", name: "Guide" },
];

export function Nav({ user }: { user: User }) {
  const { pathname } = useLocation();
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: KeyboardEvent) => event.key === "Escape" && menu.current?.removeAttribute("open");
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, []);
  const items = ITEMS.filter((item) => item.isFor?.(user) ?? true);
  const current = items.filter((item) => pathname === item.to || pathname.startsWith(`${item.to}/`)).toSorted((a, b) => b.to.length - a.to.length)[0];
  const links = (
    <ul className={styles.links}>
      {items.map((item) => (
        <li key={item.to}>
          <Link to={item.to} className={cx(item === current && styles.on)} aria-current={item === current ? "page" : undefined}>
            {item.name}
          </Link>
        </li>
      ))}
    </ul>
  );
  return (
    <header className={styles.side}>
      <Brand to="/app" />
      <nav aria-label="Main" className={styles.wide}>
        {links}
      </nav>
      <div className={styles.wide}>
        <UserBlock user={user} />
      </div>
      <details key={pathname} className={styles.menu} ref={menu}>
        <summary>Menu</summary>
        <div className={styles.panel}>
          <nav aria-label="Main">{links}</nav>
          <UserBlock user={user} />
        </div>
      </details>
    </header>
  );
}

const ROLES = { buyer: "buyer", seller: "seller", both: "buyer and seller" } as const;

function UserBlock({ user }: { user: User }) {
  const wallet = useWallet();
  return (
    <div className={styles.user}>
      <Link to="/app/wallet" className={styles.wallet}>
        <span>Wallet</span>
        <b>{count(wallet?.credits ?? user.credits)}</b>
        <span>{wallet?.held ? `credits; ${count(wallet.held)} more held for jobs` : "credits"}</span>
      </Link>
      <NavLink to="/app/account" className={styles.account}>
        <bdi title={user.email}>{user.email}</bdi>
        <span>{ROLES[user.role]} · account</span>
      </NavLink>
    </div>
  );
}
