import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { api, unwrap } from "../api/client";
import { useAdmins, useConfiguration } from "../api/queries";
import type { AdminView } from "../api/shapes";
import { useAttempt } from "../parts/attempt";
import { Action, GuardedAction, RoleNote } from "../parts/action";
import { ChoiceField, TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { PageHead } from "../parts/page";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable } from "../parts/table";
import { PageTabs } from "../parts/tabs";
import { Badge, CodeBlock, RoleBadges, Time } from "../parts/words";
import { mayDo, ROLES, type Role } from "../session";
import { NodesTab } from "./settings/nodes";
import { PoliciesTab } from "./settings/policies";
import { needsRestart } from "./settings/restart-keys";
import { SessionsTab } from "./settings/sessions";

export function SettingsPage() {
  return (
    <>
      <PageHead title="Settings">The configuration and the policies that are in effect, who may use this console, and the gateways that share its state.</PageHead>
      <PageTabs
        label="Settings"
        tabs={[
          { id: "configuration", title: "Configuration", content: () => <ConfigurationTab /> },
          { id: "policies", title: "Policies", content: () => <PoliciesTab /> },
          { id: "admins", title: "Admins", content: () => <AdminsTab /> },
          { id: "sessions", title: "Sessions", content: () => <SessionsTab /> },
          { id: "nodes", title: "Nodes", content: () => <NodesTab /> },
        ]}
      />
    </>
  );
}

type Values = Record<string, unknown>;

function ConfigurationTab() {
  const configuration = useConfiguration();
  return (
    <div className="stack wide">
      <Reload />
      <Loaded query={configuration} lines={10}>
        {(sections) => (
          <div className="sections">
            {Object.entries(sections).map(([name, values]) => (
              <section key={name} className="card stack tight">
                <h2>
                  <code>[{name}]</code>
                </h2>
                <SectionFacts section={name} values={values} />
              </section>
            ))}
          </div>
        )}
      </Loaded>
    </div>
  );
}

function SectionFacts({ section, values }: { section: string; values: unknown }) {
  const entries: [string, unknown][] = Array.isArray(values)
    ? values.map((value) => [String(value), ""])
    : Object.entries((values ?? {}) as Values);
  if (entries.length === 0) return <p className="soft small">nothing</p>;
  return (
    <dl className="facts small">
      {entries.map(([key, value]) => (
        <div key={key} style={{ display: "contents" }}>
          <dt className="mono">{key}</dt>
          <dd>
            <Setting value={value} /> {needsRestart(section, key) && <span className="soft" title="A change is in effect after the next start">next start</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A list of tables, such as that of issuers, has a line for each table. */
function Setting({ value }: { value: unknown }) {
  if (value === "") return null;
  const lines = Array.isArray(value) && value.some((entry) => typeof entry === "object") ? value : [value];
  return lines.map((line, at) => (
    <code key={at} className={lines.length > 1 ? "setting-line" : undefined}>
      {typeof line === "string" ? line : JSON.stringify(line)}
    </code>
  ));
}

interface Taken {
  changed: string[];
  needs_restart: string[];
  plugins: string[];
}

function Reload() {
  const client = useQueryClient();
  const [taken, setTaken] = useState<Taken | null>(null);
  const { error, isPending, attempt } = useAttempt();
  const reload = async () => {
    setTaken(null);
    await attempt(async () => {
      setTaken(await unwrap(api.POST("/v1/config/reload")));
    });
    await client.invalidateQueries();
  };
  const isSame = taken && [taken.changed, taken.needs_restart, taken.plugins].every((list) => list.length === 0);
  return (
    <section className="stack tight">
      <div className="row">
        <GuardedAction needs="operator" onPress={() => void reload()} isPending={isPending}>
          Reload the configuration
        </GuardedAction>
        <span className="soft">
          Secrets are never shown. A file with a fault changes nothing. A key marked <em>next start</em> waits for the next start.
        </span>
      </div>
      {error != null && <ProblemNote error={error} />}
      {taken && (
        <div className="note good stack tight" role="status">
          {isSame && <p>The file is what is in effect.</p>}
          <Places title="In effect now" places={taken.changed} />
          <Places title="In effect after the next start" places={taken.needs_restart} />
          <Places title="Plugins" places={taken.plugins} />
        </div>
      )}
    </section>
  );
}

function Places({ title, places }: { title: string; places: string[] }) {
  if (places.length === 0) return null;
  return (
    <div>
      <strong>{title}</strong>
      <ul>
        {places.map((place) => (
          <li key={place}>
            <code>{place}</code>
          </li>
        ))}
      </ul>
    </div>
  );
}

function AdminsTab() {
  const isOperator = mayDo("operator");
  const admins = useAdmins(isOperator);
  const [isMaking, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<AdminView | null>(null);
  if (!isOperator) {
    return (
      <Empty title="Operators see the admins">
        <RoleNote needs="operator" />
      </Empty>
    );
  }
  return (
    <div className="stack">
      <div>
        <GuardedAction needs="operator" kind="main" onPress={() => setMaking(true)}>
          Make an admin key
        </GuardedAction>
      </div>
      <Loaded query={admins}>
        {(all) => (
          <DataTable
            label="Admins"
            rows={[...all].sort((a, b) => Number(a.revoked_ms ?? 0) - Number(b.revoked_ms ?? 0) || b.created_ms - a.created_ms)}
            rowKey={({ id }) => id}
            columns={[
              { head: "Name", lead: true, cell: (admin) => <strong>{admin.name}</strong> },
              { head: "Role", cell: (admin) => <RoleBadges {...admin} /> },
              { head: "Made", cell: (admin) => <Time ms={admin.created_ms} /> },
              { head: "By", cell: (admin) => <code>{admin.created_by}</code> },
              { head: "Status", cell: (admin) => (admin.revoked_ms == null ? <Badge tone="good">valid</Badge> : <Badge>revoked</Badge>) },
              {
                head: "",
                cell: (admin) =>
                  admin.revoked_ms == null ? (
                    <Action kind="compact" label={`Revoke the key of ${admin.name}`} onPress={() => setRevoking(admin)}>
                      Revoke
                    </Action>
                  ) : null,
              },
            ]}
          />
        )}
      </Loaded>
      <Overlay title="Make an admin key" kind="dialog" isOpen={isMaking} onClose={() => setMaking(false)}>
        <AdminForm />
      </Overlay>
      {revoking && <RevokeAdmin view={revoking} onClose={() => setRevoking(null)} />}
    </div>
  );
}

function AdminForm() {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [made, setMade] = useState<string | null>(null);
  const { error, isPending, attempt } = useAttempt();
  const make = async (event: FormEvent) => {
    event.preventDefault();
    if (isPending) return;
    await attempt(async () => {
      setMade((await unwrap(api.POST("/v1/admins", { body: { name, role } }))).key);
      await client.invalidateQueries({ queryKey: ["admins"] });
    });
  };
  if (made) {
    return (
      <div className="stack">
        <div className="note warn">
          <strong>Copy it now.</strong> It is shown this once; only its hash is kept.
        </div>
        <CodeBlock text={made} wraps label="The admin key" />
      </div>
    );
  }
  return (
    <form className="stack" onSubmit={(event) => void make(event)}>
      <TextField label="Name" value={name} onChange={setName} required help="A key for each person; the trail has this name." />
      <ChoiceField
        label="Role"
        value={role}
        onChange={(value) => setRole(value as Role)}
        options={ROLES}
        help="A viewer reads. An editor also submits contracts and publishes what needs a second look. An operator also publishes what breaks, and makes keys."
      />
      {error != null && <ProblemNote error={error} />}
      <div>
        <Action kind="main" type="submit" isPending={isPending} isDisabled={name === ""}>
          Make the key
        </Action>
      </div>
    </form>
  );
}

function RevokeAdmin({ view, onClose }: { view: AdminView; onClose: () => void }) {
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const revoke = async () => {
    try {
      await unwrap(api.DELETE("/v1/admins/{id}", { params: { path: { id: view.id } } }));
      await client.invalidateQueries({ queryKey: ["admins"] });
      onClose();
    } catch (caught) {
      setError(caught);
    }
  };
  return (
    <Overlay title={`Revoke the key of ${view.name}?`} kind="dialog" isOpen onClose={onClose}>
      <p>The next request with it is refused. Make sure that another operator is left: the state folder is the only other way in.</p>
      {error != null && <ProblemNote error={error} />}
      <div className="row">
        <Action kind="danger" onPress={() => void revoke()}>
          Revoke
        </Action>
        <Action onPress={onClose}>Keep it</Action>
      </div>
    </Overlay>
  );
}
