import { useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, unwrap } from "../api/client";
import { documentOf, useConfiguration, useContract, useDrafts, useUpstreams } from "../api/queries";
import type { UpstreamView } from "../api/shapes";
import { useAddressValue } from "../location";
import { useAttempt } from "../parts/attempt";
import { Action, GuardedAction } from "../parts/action";
import { Overlay } from "../parts/overlay";
import { PageHead } from "../parts/page";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Badge, ClassBadge, CodeBlock, count, pretty, relativeTime, Time, type Tone } from "../parts/words";
import { draftAddress, VersionStep } from "./drafts";
import { ServerAccounts } from "./servers/accounts";
import { Lines, ServerWizard } from "./servers/wizard";

/** Whose tokens a server is asked with. */
const AUTHORIZED: Record<string, string> = {
  none: "carry no token",
  header: "carry a header of the configuration",
  client_credentials: "carry a token of the gateway's own",
  oauth: "carry a token of the person who calls, who connects an account",
  exchange: "carry a token that the caller's own is exchanged for",
};

const TONES: Record<string, Tone> = { up: "good", down: "bad" };

export function ServersPage() {
  const upstreams = useUpstreams();
  const [open, setOpen] = useAddressValue("server");
  const [adding, setAdding] = useAddressValue("add");
  const add = () => setAdding("yes", { push: true });
  const columns: Column<UpstreamView>[] = [
    {
      head: "Server",
      lead: true,
      cell: (server) => (
        <button type="button" className="open" onClick={() => setOpen(server.name, { push: true })}>
          {server.name}
        </button>
      ),
    },
    {
      head: "State",
      cell: (server) => (
        <>
          <Badge tone={TONES[server.state] ?? ""}>{server.state}</Badge>
          {server.backing_off > 0 && <div className="soft">{count(server.backing_off, "tool")} not called for a while</div>}
        </>
      ),
    },
    {
      head: "Published as",
      cell: (server) =>
        server.version ? (
          <Link href={`/contracts/${encodeURIComponent(server.contract)}`}>
            {server.contract}@{server.version}
          </Link>
        ) : (
          <span className="soft">nothing yet</span>
        ),
    },
    { head: "Tools", number: true, cell: (server) => server.tools },
    { head: "Calls", number: true, cell: (server) => server.calls.toLocaleString("en") },
    { head: "Not answered", number: true, cell: (server) => (server.failures > 0 ? server.failures.toLocaleString("en") : null) },
    { head: "Looked at", cell: (server) => <Time ms={server.looked_ms} /> },
    {
      head: "Waiting",
      cell: (server) => (server.draft ? <Link href={draftAddress({ contract: server.contract, id: server.draft })}>a change</Link> : null),
    },
  ];
  return (
    <>
      <PageHead
        title="Servers"
        actions={
          <Action kind="main" onPress={add}>
            Add a server
          </Action>
        }
      >
        Other MCP servers behind this gateway. Agents see the lists that someone agreed to.
      </PageHead>
      <Loaded query={upstreams}>
        {({ upstreams: all, folder }) => {
          const chosen = all.find((server) => server.name === open);
          return (
            <>
              {all.length === 0 ? (
                <Empty title="No other server">
                  <p>Paste its URL, its command line or a client's configuration: what it offers is shown before anything is added.</p>
                  <Action onPress={add}>Add a server</Action>
                </Empty>
              ) : (
                <div className="stack wide">
                  <DataTable label="Servers" columns={columns} rows={all} rowKey={({ name }) => name} current={open} />
                  <WaitingChanges servers={all} />
                </div>
              )}
              <Overlay title="Add a server" isOpen={adding !== ""} onClose={() => setAdding("")}>
                <ServerWizard all={all} folder={folder} />
              </Overlay>
              <Overlay title={open} isOpen={chosen !== undefined} onClose={() => setOpen("")} aside={chosen && <Badge tone={TONES[chosen.state] ?? ""}>{chosen.state}</Badge>}>
                {chosen && <ServerDetail server={chosen} />}
              </Overlay>
            </>
          );
        }}
      </Loaded>
    </>
  );
}

/** Changes of the servers that agents do not see until someone agrees. */
function WaitingChanges({ servers }: { servers: UpstreamView[] }) {
  const drafts = useDrafts();
  const waiting = (drafts.data ?? []).filter(({ contract }) => servers.some((server) => server.contract === contract));
  if (waiting.length === 0) return null;
  return (
    <section className="stack tight">
      <h2>Waiting changes</h2>
      <p className="soft">Agents are served what was agreed to, until someone publishes these.</p>
      <DataTable
        label="Waiting changes"
        rows={waiting}
        rowKey={({ id }) => id}
        columns={[
          { head: "Contract", lead: true, cell: (draft) => <Link href={draftAddress(draft)}>{draft.contract}</Link> },
          { head: "Change", cell: (draft) => <ClassBadge name={draft.class} /> },
          { head: "Version", cell: (draft) => <VersionStep draft={draft} /> },
          { head: "Seen", cell: (draft) => <Time ms={draft.created_ms} /> },
          { head: "Needs", cell: (draft) => draft.needs },
          { head: "", cell: (draft) => <Link href={draftAddress(draft)}>See the difference</Link> },
        ]}
      />
    </section>
  );
}

/** What agents are served of it, first of all. */
function Serves({ server }: { server: UpstreamView }) {
  const contract = useContract(server.version ? server.contract : "");
  if (!server.version) return <p>Serves nothing yet{server.draft && ": its tools wait for a review"}.</p>;
  const { tools = [], prompts = [], resourceTemplates = [] } = (contract.data && documentOf(contract.data)) ?? {};
  const parts = [count(tools.length, "tool"), prompts.length > 0 && count(prompts.length, "prompt"), resourceTemplates.length > 0 && count(resourceTemplates.length, "template")];
  return (
    <p>
      Serves {contract.data ? parts.filter(Boolean).join(", ") : "…"}:{" "}
      <Link href={`/contracts/${encodeURIComponent(server.contract)}`}>
        {server.contract}@{server.version}
      </Link>
    </p>
  );
}

/** A server that answers is read at a fixed interval; one that does not is tried again and again. */
function NextLook({ server }: { server: UpstreamView }) {
  const pace = useConfiguration().data?.contracts.drift_interval_s ?? 0;
  if (server.looked_ms == null || server.state !== "up" || pace === 0) return null;
  const next = server.looked_ms + pace * 1000;
  return <>, {next > Date.now() ? `again ${relativeTime(next, Date.now())}` : "again soon"}</>;
}

function ServerDetail({ server }: { server: UpstreamView }) {
  const client = useQueryClient();
  const { error, isPending, attempt } = useAttempt();
  const look = async () => {
    await attempt(async () => {
      await unwrap(api.POST("/v1/upstreams/{name}/look", { params: { path: { name: server.name } } }));
    });
    await client.invalidateQueries();
  };
  return (
    <div className="stack">
      {server.reason && (
        <div className="note bad">
          <p className="small">{server.reason}</p>
        </div>
      )}
      {error != null && <ProblemNote error={error} retry={() => void look()} />}
      <Serves server={server} />
      <div className="row">
        <GuardedAction needs="editor" onPress={() => void look()} isPending={isPending}>
          Look at its lists now
        </GuardedAction>
        {server.draft && (
          <Link className="button main" href={draftAddress({ contract: server.contract, id: server.draft })}>
            Review what waits
          </Link>
        )}
      </div>
      <dl className="facts">
        <dt>Requests to it</dt>
        <dd>{AUTHORIZED[server.auth ?? "none"]}</dd>
        <dt>{server.address === "" || /^(https?|env|file):/.test(server.address) ? "Address" : "Started by"}</dt>
        <dd>
          <code>{server.address || "not shown"}</code>
        </dd>
        <dt>Looked at</dt>
        <dd>
          <Time ms={server.looked_ms} />
          <NextLook server={server} />
        </dd>
        <dt>Sessions</dt>
        <dd>
          {server.sessions} open, {count(server.restarts, "restart")}
        </dd>
        <dt>Calls</dt>
        <dd>
          {server.calls.toLocaleString("en")} ({server.failures.toLocaleString("en")} not answered)
        </dd>
      </dl>
      {server.auth === "oauth" && <ServerAccounts server={server.name} />}
      <Lines title="Left out" lines={server.left_out} />
      <Lines title="Published differently from what it wrote" lines={server.notes} />
      {server.stderr && (
        <section className="stack tight">
          <h3>What it wrote to stderr last</h3>
          <CodeBlock text={server.stderr} wraps label="stderr" />
        </section>
      )}
      {server.server && (
        <section className="stack tight">
          <h3>How it describes itself</h3>
          <CodeBlock text={pretty(server.server as never)} label="Server" />
        </section>
      )}
    </div>
  );
}
