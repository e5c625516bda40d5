import type { ComponentProps, ReactNode } from "react";
import { Link, type LinkProps } from "react-router";
import styles from "./Button.module.css";
import { cx } from "./cx";

type Variant = "primary" | "plain" | "quiet" | "danger";

interface ButtonProps extends ComponentProps<"button"> {
  variant?: Variant;
  /** Words while it works: the button cannot be pressed then. */
  busy?: ReactNode;
}

export function Button({ variant = "plain", busy, children, className, disabled, type = "button", ...rest }: ButtonProps) {
  const isBusy = Boolean(busy);
  return (
    <button {...rest} type={type} disabled={disabled || isBusy} aria-busy={isBusy || undefined} className={cx(styles.button, styles[variant], className)}>
      {isBusy ? busy : children}
    </button>
  );
}

/** A link to another page of the app that looks like a button. */
export function ButtonLink({ variant = "plain", className, ...rest }: LinkProps & { variant?: Variant }) {
  return <Link {...rest} className={cx(styles.button, styles[variant], className)} />;
}

/** A link out of the app, such as a download. */
export function ButtonAnchor({ variant = "plain", className, children, ...rest }: ComponentProps<"a"> & { variant?: Variant }) {
  return (
    <a {...rest} className={cx(styles.button, styles[variant], className)}>
      {children}
    </a>
  );
}
