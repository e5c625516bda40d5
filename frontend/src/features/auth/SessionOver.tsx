import { useState } from "react";
import { useNavigate } from "react-router";
import { isSessionOver } from "@/shared/api/client";
import { useSignal } from "@/shared/api/signal";
import { useLeave, type User } from "@/shared/api/session";
import { Button, Dialog } from "@/shared/ui";
import { LoginForm } from "./LoginForm";

/** Over the page of somebody whose session ended: what was being filled in stays, and goes on after the password. */
export function SessionOver({ user }: { user: User }) {
  const isOver = useSignal(isSessionOver);
  const [attempt, setAttempt] = useState(0);
  const leave = useLeave();
  const navigate = useNavigate();
  const goAway = () => {
    void navigate("/app/login");
    leave();
  };
  // Escape must not leave the page in a state where nothing works: the dialog comes back.
  return (
    <Dialog key={attempt} isOpen={isOver} onClose={() => isOver && isSessionOver.get() && setAttempt(attempt + 1)} title="Your session has ended">
      <p>Log in again to go on. The page behind this keeps what you filled in.</p>
      <br />
      <LoginForm email={user.email} after={() => undefined} other={<Button variant="quiet" onClick={goAway}>Leave this page</Button>} />
    </Dialog>
  );
}
