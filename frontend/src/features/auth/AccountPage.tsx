import { useState, type FormEvent } from "react";
import { useNavigate } from "react-router";
import { fieldErrors } from "@/shared/api/errors";
import { sentence } from "@/shared/format/text";
import { useMe } from "@/shared/api/session";
import { Button, Card, Dialog, Facts, Field, PageHeader, Problem, Stack, toast } from "@/shared/ui";
import styles from "./Auth.module.css";
import { useChangePassword, useLogout, useLogoutEverywhere } from "./queries";

export function AccountPage() {
  const me = useMe();
  return (
    <div className={styles.account}>
      <PageHeader title="Account" />
      <Stack>
        <Card title="You">
          <Facts
            items={[
              ["E-mail", <bdi key="email">{me.email}</bdi>],
              ["Role", me.role === "both" ? "buyer and seller" : me.role],
              ["Number", me.id],
            ]}
          />
        </Card>
        <Password />
        <Sessions />
      </Stack>
    </div>
  );
}

function Sessions() {
  const navigate = useNavigate();
  const [isAsking, setIsAsking] = useState(false);
  const logout = useLogout();
  const everywhere = useLogoutEverywhere();
  const home = () => void navigate("/");
  const error = logout.error ?? everywhere.error;
  return (
    <Card title="Sessions">
      <p className={styles.words}>Everywhere means every browser and every token that was handed out, this one too. Machines keep working: they have keys of their own.</p>
      {error && <Problem error={error} />}
      <div className={styles.buttons}>
        <Button onClick={() => logout.mutate(undefined, { onSuccess: home })} busy={logout.isPending && "Logging out …"}>
          Log out
        </Button>
        <Button variant="danger" onClick={() => setIsAsking(true)}>
          Log out everywhere
        </Button>
      </div>
      <Dialog
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        title="Log out everywhere?"
        footer={
          <>
            <Button onClick={() => setIsAsking(false)}>Stay</Button>
            <Button variant="danger" onClick={() => everywhere.mutate(undefined, { onSuccess: home, onSettled: () => setIsAsking(false) })} busy={everywhere.isPending && "Logging out …"}>
              Log out everywhere
            </Button>
          </>
        }
      >
        <p>All browsers and scripts that use your account have to log in again.</p>
      </Dialog>
    </Card>
  );
}

function Password() {
  const change = useChangePassword();
  const errors = fieldErrors(change.error, ["old", "new"]);
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const target = event.currentTarget;
    const form = new FormData(target);
    change.mutate(
      { old: String(form.get("old")), new: String(form.get("new")) },
      {
        onSuccess: () => {
          target.reset();
          toast("Your password is changed; all other sessions have ended");
        },
      },
    );
  };
  return (
    <Card title="Password">
      <form className={styles.form} onSubmit={onSubmit}>
        <input type="hidden" name="username" autoComplete="username" />
        <Field label="Password now" error={errors["old"] ?? (errors[""] && sentence(errors[""]))}>
          {(control) => <input {...control} type="password" name="old" autoComplete="current-password" required />}
        </Field>
        <Field label="New password" hint="At least 8 characters." error={errors["new"] && sentence(errors["new"])}>
          {(control) => <input {...control} type="password" name="new" autoComplete="new-password" required minLength={8} />}
        </Field>
        <div className={styles.buttons}>
          <Button type="submit" busy={change.isPending && "Changing …"}>
            Change password
          </Button>
        </div>
      </form>
    </Card>
  );
}
