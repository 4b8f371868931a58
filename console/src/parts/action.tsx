// Buttons, and what a role may do.
import type { ReactNode } from "react";
import { Button } from "react-aria-components";
import { mayDo, useSession, type Role } from "../session";

type Kind = "main" | "danger" | "plain" | "compact" | "plain compact" | "";

interface ActionProps {
  children: ReactNode;
  onPress?: () => void;
  kind?: Kind;
  isDisabled?: boolean;
  isPending?: boolean;
  type?: "button" | "submit";
  label?: string;
  describedBy?: string;
}

export function Action({ children, onPress, kind = "", isDisabled, isPending, type, label, describedBy }: ActionProps) {
  return (
    <Button
      className={`button ${kind}`}
      onPress={onPress}
      isDisabled={isDisabled || isPending}
      type={type}
      aria-label={label}
      aria-describedby={describedBy}
    >
      {isPending ? <>{children}…</> : children}
    </Button>
  );
}

/** An action that a role may lack: it stays visible, and the role that may is named. */
export function GuardedAction({ needs, ...action }: ActionProps & { needs: Role }) {
  useSession();
  const allowed = mayDo(needs);
  return (
    <span className="row">
      <Action {...action} isDisabled={action.isDisabled || !allowed} />
      {!allowed && <RoleNote needs={needs} />}
    </span>
  );
}

export function RoleNote({ needs }: { needs: Role }) {
  const session = useSession();
  const article = /^[aeo]/.test(needs) ? "an" : "a";
  return (
    <span className="soft small">
      {article} {needs} may do this; your role is {session?.role}
    </span>
  );
}
