// The connections of the configuration: whether each answers, what is behind it, and the way to tools over it.
import { useState } from "react";
import { Link } from "wouter";
import { checkConnection, useConnections, useRows, useSources } from "../api/sources";
import { useCollections } from "../api/queries";
import type { ConnectionCheck, ConnectionView, SourceEntry } from "../api/shapes";
import { setAddressValues, useAddressValue } from "../location";
import { useAttempt } from "../parts/attempt";
import { Action, GuardedAction, RoleNote } from "../parts/action";
import { TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { ConnectionUpload, FirstRows } from "../parts/sources";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Badge, count } from "../parts/words";
import { mayDo } from "../session";

const OPEN = (open: (name: string) => void): Column<ConnectionView>[] => [
  {
    head: "Connection",
    lead: true,
    cell: ({ name }) => (
      <button type="button" className="open" onClick={() => open(name)}>
        {name}
      </button>
    ),
  },
  { head: "Kind", cell: ({ kind }) => kind },
  { head: "State", cell: (connection) => <StateBadge connection={connection} /> },
  { head: "May", cell: ({ write, uploads }) => ["read", write && "write", uploads && "take files"].filter(Boolean).join(", ") },
  { head: "Granted to", cell: ({ grants }) => Object.entries(grants).map(([plugin, grant]) => <div key={plugin}>{`${plugin}: ${grant}`}</div>) },
  { head: "Contracts", cell: ({ contracts }) => <ContractLinks contracts={contracts} /> },
];

function StateBadge({ connection }: { connection: ConnectionView }) {
  return connection.refused == null ? <Badge tone="good">open</Badge> : <Badge tone="bad">refused</Badge>;
}

function ContractLinks({ contracts }: { contracts: string[] }) {
  if (contracts.length === 0) return <span className="soft">none</span>;
  return (
    <span className="row">
      {contracts.map((name) => (
        <Link key={name} href={`/contracts/${encodeURIComponent(name)}`}>
          {name}
        </Link>
      ))}
    </span>
  );
}

export function ConnectionsTab() {
  const connections = useConnections();
  const [open, setOpen] = useAddressValue("connection");
  const close = () => setAddressValues({ connection: "", source: "", q: "" });
  return (
    <Loaded query={connections}>
      {(all) => {
        const chosen = all.find(({ name }) => name === open);
        if (all.length === 0) {
          return (
            <Empty title="No connection">
              <p>
                Name one in <code>weir.toml</code> under <code>[connections.NAME]</code> and grant it to an adapter under <code>[plugins.ADAPTER.grants]</code>.
              </p>
            </Empty>
          );
        }
        return (
          <div className="stack">
            <DataTable label="Connections" columns={OPEN((name) => setOpen(name, { push: true }))} rows={all} rowKey={({ name }) => name} current={open} />
            <p className="soft">Addresses and credentials remain in the gateway: no route shows them.</p>
            <ChangedSources />
            <Overlay title={open} isOpen={chosen !== undefined} onClose={close} aside={chosen && <StateBadge connection={chosen} />}>
              {chosen && <ConnectionDetail connection={chosen} />}
            </Overlay>
          </div>
        );
      }}
    </Loaded>
  );
}

function ChangedSources() {
  const collections = useCollections();
  const changed = (collections.data ?? []).filter(({ drift }) => drift.length > 0);
  if (changed.length === 0) return null;
  return (
    <div className="note bad">
      <strong>{count(changed.length, "source")} changed since publication:</strong>{" "}
      {changed.map(({ contract, collection }) => (
        <Link key={`${contract}/${collection}`} href={`/contracts/${encodeURIComponent(contract)}?tab=drift`}>
          {contract}/{collection}{" "}
        </Link>
      ))}
    </div>
  );
}

function ConnectionDetail({ connection }: { connection: ConnectionView }) {
  return (
    <div className="stack wide">
      <div className="stack">
        {connection.refused != null && (
          <div className="note bad stack tight">
            <p>{connection.refused}</p>
            <p className="soft">
              Calls that need it are <code>unavailable</code>. Mend its section in <code>weir.toml</code>, then <Link href="/settings">reload the configuration</Link>.
            </p>
          </div>
        )}
        <dl className="facts">
          <dt>Kind</dt>
          <dd>
            {connection.kind}, reached by the adapter <code>{connection.adapter}</code>
          </dd>
          <dt>Writes</dt>
          <dd>{connection.write ? "allowed, to plugins that were granted it" : "not allowed"}</dd>
          <dt>Granted to</dt>
          <dd>
            {Object.entries(connection.grants)
              .map(([plugin, grant]) => `${plugin} (${grant})`)
              .join(", ") || "no plugin"}
          </dd>
          <dt>Contracts</dt>
          <dd>
            <ContractLinks contracts={connection.contracts} />
          </dd>
        </dl>
        <ConnectionState key={connection.name} name={connection.name} />
      </div>
      {connection.refused == null && (mayDo("editor") ? <Browser connection={connection} /> : <RoleNote needs="editor" />)}
    </div>
  );
}

/** Whether the other end answers, when it is asked. */
function ConnectionState({ name }: { name: string }) {
  const [found, setFound] = useState<ConnectionCheck | null>(null);
  const { error, isPending, attempt } = useAttempt();
  const check = async () => {
    setFound(null);
    await attempt(async () => {
      setFound(await checkConnection(name));
    });
  };
  return (
    <section className="stack tight" aria-label="Whether it answers">
      <div className="row">
        <GuardedAction needs="editor" onPress={() => void check()} isPending={isPending}>
          Check
        </GuardedAction>
        {found?.ok && (
          <span role="status">
            <Badge tone="good">answers</Badge> after {found.ms.toLocaleString("en", { maximumFractionDigits: 1 })} ms
          </span>
        )}
      </div>
      {found && !found.ok && (
        <div className="note bad" role="status">
          <strong>It does not answer</strong> {found.code && <code>{found.code}</code>}
          {found.reason && <p>{found.reason}</p>}
        </div>
      )}
      {error != null && <ProblemNote error={error} retry={() => void check()} />}
    </section>
  );
}

const NOUNS: Record<string, string> = { files: "Files", http: "Paths" };

/** The tables or files behind it, and the one that is shown. */
function Browser({ connection }: { connection: ConnectionView }) {
  const [source, setSource] = useAddressValue("source");
  const [text, setText] = useAddressValue("q");
  const sources = useSources(connection, text);
  const isWebService = connection.kind === "http";
  const choose = (name: string) => setSource(name, { push: true });
  const columns: Column<SourceEntry>[] = [
    {
      head: "Name",
      lead: true,
      cell: ({ name }) => (
        <button type="button" className="open" onClick={() => choose(name)}>
          {name}
        </button>
      ),
    },
    { head: "Kind", cell: ({ kind }) => kind },
  ];
  return (
    <>
      <section className="stack" aria-label={NOUNS[connection.kind] ?? "Tables"}>
        <h3>{NOUNS[connection.kind] ?? "Tables"}</h3>
        {connection.uploads && <ConnectionUpload connection={connection.name} onPut={choose} />}
        {isWebService ? (
          <TextField label="Path" value={source} onChange={setSource} help="A web service lists none: write a path as its documentation has it, such as /tickets." />
        ) : (
          <>
            <TextField label="Contains" type="search" value={text} onChange={setText} />
            <Loaded query={sources} lines={3}>
              {(all) => (
                <>
                  {all.length === 0 ? (
                    <Empty title={text ? "None contains that" : "It holds nothing yet"}>
                      {text ? <Action onPress={() => setText("")}>Show all</Action> : connection.uploads && <p>Put in a file: it is a source at once.</p>}
                    </Empty>
                  ) : (
                    <DataTable label="Sources" columns={columns} rows={all} rowKey={({ name }) => name} current={source} staysTable />
                  )}
                  {sources.hasNextPage && (
                    <Action onPress={() => void sources.fetchNextPage()} isPending={sources.isFetchingNextPage}>
                      More
                    </Action>
                  )}
                </>
              )}
            </Loaded>
          </>
        )}
      </section>
      {source !== "" && <SourceDetail connection={connection.name} source={source} isTyped={isWebService} />}
    </>
  );
}

/** `isTyped`: the name may be incomplete, so no request is sent until someone submits it. */
function SourceDetail({ connection, source, isTyped }: { connection: string; source: string; isTyped: boolean }) {
  const [wanted, setWanted] = useState(isTyped ? "" : source);
  const shown = isTyped ? wanted : source;
  const rows = useRows(connection, shown);
  return (
    <section className="stack" aria-label={`The source ${source}`}>
      <h3>{source}</h3>
      <div className="row">
        {isTyped && <Action onPress={() => setWanted(source)}>Show rows</Action>}
        <Link className="button main" href={`/builder?${new URLSearchParams({ connection, source })}`}>
          Draft a contract
        </Link>
      </div>
      {shown !== "" && <Loaded query={rows}>{(found) => <FirstRows rows={found} />}</Loaded>}
    </section>
  );
}
