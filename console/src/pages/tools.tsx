import { Link } from "wouter";
import { useConfiguration, useKeys, useTools, type ServedTool } from "../api/queries";
import type { ToolDocument } from "../api/shapes";
import { useAddressValue } from "../location";
import { ChoiceField, TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { PageHead } from "../parts/page";
import { Snippets } from "../parts/snippets";
import { Empty, ProblemNote, Skeleton } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Badge, CodeBlock, duration, pretty } from "../parts/words";
import { requiredOf } from "../schema/model";
import { sampleArguments } from "../schema/sample";
import { SchemaView } from "../schema/view";

export const writes = (tool: ToolDocument) => tool.annotations?.readOnlyHint !== true;

export function ReachBadge({ tool }: { tool: ToolDocument }) {
  if (!writes(tool)) return <Badge tone="good">reads</Badge>;
  return <Badge tone={tool.annotations?.destructiveHint ? "warn" : "accent"}>{tool.annotations?.destructiveHint ? "changes" : "writes"}</Badge>;
}

/** A trial that begins with an example of what is required. */
export function trialAddress(tool: ToolDocument): string {
  const sample = sampleArguments(tool.inputSchema);
  const query = new URLSearchParams({ tool: tool.name });
  if (Object.keys(sample).length > 0) query.set("arguments", JSON.stringify(sample));
  return `/try?${query}`;
}

export function ToolsPage() {
  const [agent, setAgent] = useAddressValue("agent");
  const { tools, isPending, error, refetch } = useTools(agent);
  const keys = useKeys();
  const agents = [...new Set((keys.data ?? []).filter((key) => key.revoked_ms == null).map((key) => key.agent))];
  const [text, setText] = useAddressValue("q");
  const [contract, setContract] = useAddressValue("contract");
  const [reach, setReach] = useAddressValue("reach");
  const [open, setOpen] = useAddressValue("tool");
  const contracts = [...new Set(tools.map((served) => served.contract))];
  const wanted = text.toLowerCase();
  const rows = tools.filter(
    (served) =>
      (!contract || served.contract === contract) &&
      (!reach || writes(served.tool) === (reach === "writes")) &&
      `${served.tool.name} ${served.tool.description ?? ""}`.toLowerCase().includes(wanted),
  );
  const chosen = tools.find((served) => served.tool.name === open);
  const columns: Column<ServedTool>[] = [
    {
      head: "Tool",
      lead: true,
      cell: ({ tool }) => (
        <>
          <button type="button" className="open" onClick={() => setOpen(tool.name, { push: true })}>
            {tool.name}
          </button>
          {tool.description && <div className="soft description">{tool.description}</div>}
        </>
      ),
    },
    {
      head: "Contract",
      cell: (served) => (
        <Link href={`/contracts/${encodeURIComponent(served.contract)}`}>
          {served.contract}@{served.version}
        </Link>
      ),
    },
    {
      head: "Does",
      cell: ({ tool, verb }) => (
        <span className="row">
          {verb} <ReachBadge tool={tool} />
        </span>
      ),
    },
    { head: "Arguments", cell: ({ tool }) => <ArgumentCount tool={tool} /> },
    { head: "24 hours", number: true, cell: ({ calls_24h }) => (calls_24h > 0 ? calls_24h.toLocaleString("en") : null) },
    { head: "95th percentile", number: true, cell: ({ p95_ms }) => (p95_ms == null ? null : duration(p95_ms)) },
    { head: "Bytes", number: true, cell: ({ bytes }) => bytes.toLocaleString("en") },
    { head: "Tokens", number: true, cell: ({ tokens }) => tokens.toLocaleString("en") },
  ];
  return (
    <>
      <PageHead title="Tools">Every tool that is served now, with its entry as a client lists it. Calls of 24 hours and times are those of this process. Bytes are those of the entry; tokens are an estimate of what a model reads of it.</PageHead>
      <div className="stack">
        <div className="filters">
          <TextField type="search" label="Find" value={text} onChange={setText} placeholder="Name or description" />
          <ChoiceField label="Contract" value={contract} onChange={setContract} options={contracts} none="All" />
          <ChoiceField
            label="Reach"
            value={reach}
            onChange={setReach}
            none="All"
            options={[
              { value: "reads", text: "Reads" },
              { value: "writes", text: "Writes or changes" },
            ]}
          />
          {agents.length > 0 && <ChoiceField label="As the agent" value={agent} onChange={setAgent} options={agents} none="Everything" />}
        </div>
        {error != null && <ProblemNote error={error} retry={refetch} />}
        {isPending && tools.length === 0 ? (
          <Skeleton lines={7} />
        ) : rows.length > 0 ? (
          <DataTable label="Tools" columns={columns} rows={rows} rowKey={({ tool }) => tool.name} current={open} />
        ) : tools.length > 0 ? (
          <Empty title="No tool fits the filters" />
        ) : (
          !error && (
            <Empty title="No tool is served">
              <p>
                A tool is served as soon as its contract is published. <Link href="/contracts">See the contracts</Link> and what waits.
              </p>
            </Empty>
          )
        )}
      </div>
      <Overlay title={open} isOpen={chosen !== undefined} onClose={() => setOpen("")} aside={chosen && <ReachBadge tool={chosen.tool} />}>
        {chosen && <ToolDetail served={chosen} />}
      </Overlay>
    </>
  );
}

function ArgumentCount({ tool }: { tool: ToolDocument }) {
  const names = Object.keys((tool.inputSchema.properties as object | undefined) ?? {});
  const required = requiredOf(tool.inputSchema).length;
  return (
    <span className="small" title={names.join(", ")}>
      {names.length}
      {required > 0 && <span className="soft">, {required} required</span>}
    </span>
  );
}

function ToolDetail({ served: { tool, contract, version } }: { served: ServedTool }) {
  const configuration = useConfiguration();
  const sample = sampleArguments(tool.inputSchema);
  return (
    <div className="stack">
      {tool.description && <p>{tool.description}</p>}
      <div className="row">
        <Link className="button main" href={trialAddress(tool)}>
          Try it
        </Link>
        <Link className="button" href={`/contracts/${encodeURIComponent(contract)}`}>
          {contract}@{version}
        </Link>
        <Link className="button" href={`/audit?tool=${encodeURIComponent(tool.name)}`}>
          Its calls
        </Link>
      </div>
      <SchemaView schema={tool.inputSchema} label="Arguments" />
      {tool.outputSchema && <SchemaView schema={tool.outputSchema} label="Result" />}
      <section className="stack tight">
        <h3>A sample call</h3>
        <CodeBlock text={pretty(sample)} label="Arguments of a sample call" />
        <p className="soft small">What is required, with an example of each. Try it begins with these arguments.</p>
      </section>
      <section className="stack tight">
        <h3>Connect a client</h3>
        {configuration.data && <Snippets configuration={configuration.data} contract={contract} />}
      </section>
    </div>
  );
}
