import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap } from "../api/client";
import { usePlugins } from "../api/queries";
import type { PluginView } from "../api/shapes";
import { putFile } from "../api/upload";
import { GuardedAction } from "../parts/action";
import { Overlay } from "../parts/overlay";
import { PageHead } from "../parts/page";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable } from "../parts/table";
import { PageTabs } from "../parts/tabs";
import { FileUpload } from "../parts/upload";
import { Badge, CodeBlock, Digest, megabytes, type Tone } from "../parts/words";
import { ConnectionsTab } from "./connections";

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
            <PluginUpload />
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
              Reload the folder
            </GuardedAction>
          </div>
          <Overlay title="The folder was reloaded" kind="dialog" isOpen={reloaded !== null} onClose={() => setReloaded(null)}>
            <CodeBlock text={(reloaded ?? []).join("\n") || "It holds nothing."} wraps label="Outcomes" />
          </Overlay>
        </div>
      )}
    </Loaded>
  );
}

/** The most memory that one instance has used, and that kept ready for the next call. */
function Memory({ plugin }: { plugin: PluginView }) {
  if (plugin.memory_peak_bytes === 0) return null;
  return (
    <span title="The most memory that one of its instances has used">
      {megabytes(plugin.memory_peak_bytes)}
      {plugin.parked_bytes > 0 && <div className="soft">{megabytes(plugin.parked_bytes)} kept ready</div>}
    </span>
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
  { head: "Memory", number: true, cell: (plugin: PluginView) => <Memory plugin={plugin} /> },
  { head: "Swaps", number: true, cell: (plugin: PluginView) => (plugin.swaps > 0 ? plugin.swaps : null) },
];

function PluginUpload() {
  const client = useQueryClient();
  return (
    <FileUpload
      label="Upload a plugin"
      needs="operator"
      kind="main"
      accept=".wasm"
      send={(file, progress) => putFile(`/v1/plugins/${encodeURIComponent(file.name.replace(/\.wasm$/, ""))}`, file, "application/wasm", progress)}
      words={{ waiting: "is being loaded…", done: "runs." }}
      onDone={() => void client.invalidateQueries()}
    />
  );
}
