// Who is signed in now.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap } from "../../api/client";
import { useSessions } from "../../api/queries";
import { Action, RoleNote } from "../../parts/action";
import { Empty, Loaded, ProblemNote } from "../../parts/states";
import { DataTable } from "../../parts/table";
import { Badge, RoleBadges, Time } from "../../parts/words";
import { mayDo } from "../../session";

export function SessionsTab() {
  const isOperator = mayDo("operator");
  const client = useQueryClient();
  const sessions = useSessions(isOperator);
  const [ending, setEnding] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const end = async (id: string) => {
    setEnding(id);
    setError(null);
    try {
      await unwrap(api.DELETE("/v1/sessions/{id}", { params: { path: { id } } }));
    } catch (caught) {
      setError(caught);
    }
    setEnding(null);
    await client.invalidateQueries({ queryKey: ["sessions"] });
  };
  if (!isOperator) {
    return (
      <Empty title="Operators see the sessions">
        <RoleNote needs="operator" />
      </Empty>
    );
  }
  return (
    <div className="stack">
      <p className="soft">A session ends after 12 hours, when it is not used for an hour, and with its admin key.</p>
      {error != null && <ProblemNote error={error} />}
      <Loaded query={sessions}>
        {(all) =>
          all.length === 0 ? (
            <Empty title="No session is open">
              <p>You are signed in with the admin key itself.</p>
            </Empty>
          ) : (
            <DataTable
              label="Sessions"
              rows={all}
              rowKey={({ id }) => id}
              columns={[
                {
                  head: "Name",
                  lead: true,
                  cell: ({ name, own }) => (
                    <span className="row">
                      <strong>{name}</strong> {own && <Badge tone="good">this one</Badge>}
                    </span>
                  ),
                },
                { head: "Role", cell: ({ role }) => <RoleBadges role={role} /> },
                { head: "Began", cell: ({ created_ms }) => <Time ms={created_ms} /> },
                { head: "Last used", cell: ({ used_ms }) => <Time ms={used_ms} /> },
                { head: "Ends", cell: ({ expires_ms }) => <Time ms={expires_ms} /> },
                {
                  head: "",
                  cell: ({ id, name, own }) =>
                    own ? null : (
                      <Action kind="compact" label={`End the session of ${name}`} isPending={ending === id} onPress={() => void end(id)}>
                        End it
                      </Action>
                    ),
                },
              ]}
            />
          )
        }
      </Loaded>
    </div>
  );
}
