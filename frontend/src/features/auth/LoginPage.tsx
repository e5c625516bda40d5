import { Link, Navigate, useSearchParams } from "react-router";
import { useMaybeMe } from "@/shared/api/session";
import { AuthShell } from "./AuthShell";
import { LoginForm, placeAfterLogin } from "./LoginForm";

export function LoginPage() {
  const [params] = useSearchParams();
  const me = useMaybeMe();
  const next = params.get("next");
  if (me) return <Navigate to={placeAfterLogin(next, me)} replace />;
  return (
    <AuthShell title="Log in">
      <LoginForm after={() => undefined} />
      <p>
        New here? <Link to={`/app/register${next ? `?next=${encodeURIComponent(next)}` : ""}`}>Make an account</Link>
      </p>
    </AuthShell>
  );
}
