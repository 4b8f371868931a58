// Buttons, and what a role may do.
import { mayDo, useSession, type Role } from "../session";
import { Action, type ActionProps } from "./button";

export { Action };

/** An action that a role may lack: it remains visible, and the role that may do it is named. */
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
