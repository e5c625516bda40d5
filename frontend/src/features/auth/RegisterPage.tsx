import { useState, type FormEvent } from "react";
import { Link, Navigate, useSearchParams } from "react-router";
import { ApiError, fieldErrors } from "@/shared/api/errors";
import { sentence } from "@/shared/format/text";
import { useMaybeMe, type User } from "@/shared/api/session";
import { Button, Choices, Field, toast } from "@/shared/ui";
import styles from "./Auth.module.css";
import { AuthShell } from "./AuthShell";
import { placeAfterLogin } from "./LoginForm";
import { useRegister } from "./queries";

const ROLES = [
  { value: "buyer", label: "Buyer", hint: "I train models on other people's machines" },
  { value: "seller", label: "Seller", hint: "I lend my machines and earn credits" },
  { value: "both", label: "Both", hint: "Earn with my machines, spend on my models" },
] as const;

const isRole = (text: string | null): text is User["role"] => ROLES.some((role) => role.value === text);

export function RegisterPage() {
  const [params] = useSearchParams();
  const wished = params.get("role");
  const [role, setRole] = useState<User["role"]>(isRole(wished) ? wished : "buyer");
  const register = useRegister();
  const me = useMaybeMe();
  const code = register.error instanceof ApiError ? register.error.code : "";
  const errors = fieldErrors(register.error, ["email", "password", "invite"]);
  if (code === "email_taken") errors["email"] = errors[""] ?? "";
  if (code === "registration_closed") errors["invite"] = errors[""] ?? "";
  if (me) return <Navigate to={placeAfterLogin(params.get("next"), me)} replace />;

  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const invite = String(form.get("invite") ?? "").trim();
    const account = { email: String(form.get("email")), password: String(form.get("password")), role, invite: invite || null };
    register.mutate(account, { onSuccess: ({ user }) => toast(`Welcome. ${user.credits} credits are in your wallet`) });
  };
  return (
    <AuthShell title="Make an account">
      <p className={styles.bonus}>
        <b>100 credits</b> wait in your new wallet: enough for a hundred chunks of up to an hour each.
      </p>
      <form onSubmit={onSubmit} className={styles.form}>
        <Choices legend="I am a" name="role" value={role} options={ROLES} onChange={setRole} />
        <Field label="E-mail" error={errors["email"] && sentence(errors["email"])}>
          {(control) => <input {...control} type="email" name="email" autoComplete="username" required />}
        </Field>
        <Field label="Password" hint="At least 8 characters. No mail is sent, so keep it somewhere safe." error={errors["password"] && sentence(errors["password"])}>
          {(control) => <input {...control} type="password" name="password" autoComplete="new-password" required minLength={8} />}
        </Field>
        {errors["invite"] && (
          <Field label="Invitation code" error={sentence(errors["invite"])}>
            {(control) => <input {...control} name="invite" autoComplete="off" />}
          </Field>
        )}
        {errors[""] && code !== "email_taken" && code !== "registration_closed" && (
          <p role="alert" className={styles.error}>
            {sentence(errors[""])}
          </p>
        )}
        <div className={styles.buttons}>
          <Button type="submit" variant="primary" busy={register.isPending && "Making your account …"}>
            Make my account
          </Button>
        </div>
      </form>
      <p>
        Have one already? <Link to={`/app/login?${params}`}>Log in</Link>
      </p>
    </AuthShell>
  );
}
