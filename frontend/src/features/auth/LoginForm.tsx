import type { FormEvent, ReactNode } from "react";
import { fieldErrors } from "@/shared/api/errors";
import { sentence } from "@/shared/format/text";
import { homeOf, type User } from "@/shared/api/session";
import { Button, Field } from "@/shared/ui";
import styles from "./Auth.module.css";
import { useLogin } from "./queries";

export function LoginForm({ email, after, other }: { email?: string; after: (user: User) => void; other?: ReactNode }) {
  const login = useLogin();
  const errors = fieldErrors(login.error, ["email", "password"]);
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    login.mutate({ email: String(form.get("email")), password: String(form.get("password")) }, { onSuccess: ({ user }) => after(user) });
  };
  return (
    <form onSubmit={onSubmit} className={styles.form}>
      <Field label="E-mail" error={errors["email"]}>
        {(control) => <input {...control} type="email" name="email" autoComplete="username" required defaultValue={email} readOnly={email !== undefined} />}
      </Field>
      <Field label="Password" error={errors["password"] ?? (errors[""] && sentence(errors[""]))}>
        {(control) => <input {...control} data-autofocus type="password" name="password" autoComplete="current-password" required />}
      </Field>
      <div className={styles.buttons}>
        <Button type="submit" variant="primary" busy={login.isPending && "Logging in …"}>
          Log in
        </Button>
        {other}
      </div>
    </form>
  );
}

/** Where a login leads: back to the page that asked for it, if it is one of ours, else to the role's own start. */
export function placeAfterLogin(next: string | null, user: User): string {
  return next && /^\/app(\/|$|\?)/.test(next) && !next.startsWith("/app/login") ? next : homeOf(user);
}
