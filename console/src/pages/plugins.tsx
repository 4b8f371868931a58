import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../api/client";
import { ProblemError, toProblem } from "../api/problem";
import { useCollections, useConfiguration, usePlugins } from "../api/queries";
import type { PluginView } from "../api/shapes";
import { GuardedAction } from "../parts/action";
import { Overlay } from "../parts/overlay";
import { PageHead, PageTabs } from "../parts/page";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable } from "../parts/table";
import { Badge, CodeBlock, count, Digest, type Tone } from "../parts/words";
import { currentToken } from "../session";

const TONES: Record<string, Tone> = { ok: "good", failing: "bad", held: "warn", refused: "bad" };

/** The name of no file. */
const FOLDER = "";

export function PluginsPage() {
  return (
    <>
      <PageHead title="Plugins and connections">
        Plugins are WebAssembly components: adapters of sources, and functions that are tools. A plugin reaches the connections it was granted, and nothing else.
      </PageHead>
      <PageTabs
        label="Plugins and connections"
        tabs={[
          { id: "plugins", title: "Plugins", content: () => <PluginsTab /> },
          { id: "connections", title: "Connections", content: () => <ConnectionsTab /> },
        ]}
      />
    </>
  );
}

function PluginsTab() {
  const plugins = usePlugins();
  const client = useQueryClient();
  const [reloaded, setReloaded] = useState<string[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  /** The file that is being accepted, or the folder that is being read. */
  const [running, setRunning] = useState<string | null>(null);
  const act = async (name: string, work: () => Promise<unknown>) => {
    setRunning(name);
    setError(null);
    try {
      await work();
    } catch (caught) {
      setError(caught);
    }
    setRunning(null);
    await client.invalidateQueries({ queryKey: ["plugins"] });
  };
  const reload = () =>
    act(FOLDER, async () => {
      const outcomes = await unwrap(api.POST("/v1/plugins/reload"));
      setReloaded(outcomes.map(({ file, result, reason }) => `${file}: ${result}${reason ? `, ${reason}` : ""}`));
    });
  const accept = (file: string, sha256: string) =>
    act(file, () => unwrap(api.POST("/v1/plugins/{name}/accept", { params: { path: { name: file.replace(/\.wasm$/, "") } }, body: { sha256 } })));
  return (
    <Loaded query={plugins}>
      {({ plugins: all, refused }) => (
        <div className="stack wide">
          <div className="stack">
            <Upload />
            {error != null && <ProblemNote error={error} />}
            {refused.map((file) => (
              <section key={file.file} className={`note ${file.held ? "warn" : "bad"} stack tight`}>
                <h2 className="row">
                  <code>{file.file}</code> <Badge tone={TONES[file.health] ?? ""}>{file.health}</Badge>
                </h2>
                <p>{file.reason}</p>
                {file.held && (
                  <div className="row">
                    <GuardedAction needs="operator" kind="main" isPending={running === file.file} isDisabled={running !== null} onPress={() => void accept(file.file, file.held ?? "")}>
                      Accept this build
                    </GuardedAction>
                    <Digest text={file.held} />
                  </div>
                )}
              </section>
            ))}
          </div>
          {all.length === 0 ? (
            <Empty title="No plugin runs">
              <p>Put a component into the plugins folder, or choose one above.</p>
            </Empty>
          ) : (
            <DataTable label="Plugins" rows={all} rowKey={({ name }) => name} columns={COLUMNS} />
          )}
          <div className="row">
            <GuardedAction needs="operator" isPending={running === FOLDER} isDisabled={running !== null} onPress={() => void reload()}>
              Read the folder again
            </GuardedAction>
          </div>
          <Overlay title="The folder was read" kind="dialog" isOpen={reloaded !== null} onClose={() => setReloaded(null)}>
            <CodeBlock text={(reloaded ?? []).join("\n") || "It holds nothing."} wraps label="Outcomes" />
          </Overlay>
        </div>
      )}
    </Loaded>
  );
}

const COLUMNS = [
  {
    head: "Plugin",
    lead: true,
    cell: (plugin: PluginView) => (
      <>
        <strong>{plugin.name}</strong> <span className="soft">{plugin.version}</span>
      </>
    ),
  },
  {
    head: "Health",
    cell: (plugin: PluginView) => (
      <>
        <Badge tone={TONES[plugin.health] ?? ""}>{plugin.health}</Badge>
        {plugin.reason && <div className="small">{plugin.reason}</div>}
      </>
    ),
  },
  { head: "Build", cell: (plugin: PluginView) => <Digest text={plugin.digest} /> },
  { head: "From", cell: (plugin: PluginView) => plugin.origin },
  {
    head: "Grants",
    cell: (plugin: PluginView) => Object.entries(plugin.grants).map(([connection, grant]) => <div key={connection}>{`${connection}: ${grant}`}</div>),
  },
  { head: "Calls", number: true, cell: (plugin: PluginView) => plugin.calls.toLocaleString("en") },
  { head: "Failures", number: true, cell: (plugin: PluginView) => (plugin.failures > 0 ? plugin.failures.toLocaleString("en") : null) },
  { head: "Swaps", number: true, cell: (plugin: PluginView) => (plugin.swaps > 0 ? plugin.swaps : null) },
];

/** The time of an upload is that of the link, so that it shows how far it is. */
function send(name: string, file: File, progress: (part: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", `/v1/plugins/${encodeURIComponent(name)}`);
    request.setRequestHeader("Authorization", `Bearer ${currentToken() ?? ""}`);
    request.setRequestHeader("Content-Type", "application/wasm");
    request.upload.onprogress = ({ loaded, total }) => progress(total > 0 ? loaded / total : 0);
    request.onerror = () => reject(new ProblemError(toProblem("", 0, "The upload broke off")));
    request.onload = () => {
      if (request.status < 300) return resolve();
      let body: unknown = request.responseText;
      try {
        body = JSON.parse(request.responseText);
      } catch {
        // The text is shown as it is.
      }
      reject(new ProblemError(toProblem(body, request.status, request.statusText)));
    };
    request.send(file);
  });
}

function Upload() {
  const client = useQueryClient();
  const input = useRef<HTMLInputElement>(null);
  const [state, setState] = useState<{ file: string; part: number; done: boolean } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const upload = async (chosen: HTMLInputElement) => {
    const file = chosen.files?.[0];
    // The same file is a change again when it is chosen again.
    chosen.value = "";
    if (!file) return;
    setError(null);
    setState({ file: file.name, part: 0, done: false });
    try {
      await send(file.name.replace(/\.wasm$/, ""), file, (part) => setState({ file: file.name, part, done: false }));
      setState({ file: file.name, part: 1, done: true });
    } catch (caught) {
      setState(null);
      setError(caught);
    }
    await client.invalidateQueries();
  };
  return (
    <section className="stack tight">
      <div className="row">
        <GuardedAction needs="operator" kind="main" isDisabled={state !== null && !state.done} onPress={() => input.current?.click()}>
          Put in a plugin
        </GuardedAction>
        <input ref={input} type="file" accept=".wasm" hidden aria-label="A component" onChange={(event) => void upload(event.target)} />
        {state && (
          <span role="status">
            {state.done ? `${state.file} runs.` : state.part < 1 ? `${state.file}: ${Math.round(state.part * 100)} %` : `${state.file}: being loaded…`}
          </span>
        )}
      </div>
      {error != null && <ProblemNote error={error} />}
    </section>
  );
}

function ConnectionsTab() {
  const configuration = useConfiguration();
  const collections = useCollections();
  return (
    <Loaded query={configuration}>
      {({ connections, plugins }) =>
        connections.length === 0 ? (
          <Empty title="No connection">
            <p>
              Name one in <code>weir.toml</code> under <code>[connections.NAME]</code> and grant it to an adapter under <code>[plugins.ADAPTER.grants]</code>.
            </p>
          </Empty>
        ) : (
          <div className="stack">
            <DataTable
              label="Connections"
              rows={connections}
              rowKey={(name) => name}
              columns={[
                { head: "Connection", lead: true, cell: (name) => <strong>{name}</strong> },
                {
                  head: "Granted to",
                  cell: (name) =>
                    Object.entries(plugins).flatMap(([plugin, { grants }]) =>
                      grants[name] ? [<div key={plugin}>{`${plugin}: ${grants[name]}`}</div>] : [],
                    ),
                },
              ]}
            />
            <p className="soft">Credentials stay in the gateway: no route shows them.</p>
            {(collections.data ?? []).some(({ drift }) => drift.length > 0) && (
              <div className="note bad">
                <strong>{count((collections.data ?? []).filter(({ drift }) => drift.length > 0).length, "source")} changed since publication:</strong>{" "}
                {(collections.data ?? [])
                  .filter(({ drift }) => drift.length > 0)
                  .map(({ contract, collection }) => (
                    <Link key={`${contract}/${collection}`} href={`/contracts/${encodeURIComponent(contract)}?tab=drift`}>
                      {contract}/{collection}{" "}
                    </Link>
                  ))}
              </div>
            )}
          </div>
        )
      }
    </Loaded>
  );
}
