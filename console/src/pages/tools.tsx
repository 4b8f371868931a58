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
import { Badge } from "../parts/words";
import { requiredOf } from "../schema/model";
import { SchemaView } from "../schema/view";

export const writes = (tool: ToolDocument) => tool.annotations?.readOnlyHint !== true;

export function ReachBadge({ tool }: { tool: ToolDocument }) {
  if (!writes(tool)) return <Badge tone="good">reads</Badge>;
  return <Badge tone={tool.annotations?.destructiveHint ? "warn" : "accent"}>{tool.annotations?.destructiveHint ? "changes" : "writes"}</Badge>;
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
        <button type="button" className="open" onClick={() => setOpen(tool.name, { push: true })}>
          {tool.name}
        </button>
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
    { head: "Verb", cell: ({ verb }) => verb },
    { head: "Reach", cell: ({ tool }) => <ReachBadge tool={tool} /> },
    { head: "Description", cell: ({ tool }) => <span className="small">{tool.description}</span> },
    { head: "Arguments", cell: ({ tool }) => <ArgumentCount tool={tool} /> },
    { head: "Bytes", number: true, cell: ({ bytes }) => bytes.toLocaleString("en") },
    { head: "Tokens", number: true, cell: ({ tokens }) => tokens.toLocaleString("en") },
  ];
  return (
    <>
      <PageHead title="Tools">Every tool that is served now, with its entry as a client lists it. Bytes are those of the entry; tokens are an estimate of what a model reads of it.</PageHead>
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
  return (
    <div className="stack">
      {tool.description && <p>{tool.description}</p>}
      <div className="row">
        <Link className="button main" href={`/try?tool=${encodeURIComponent(tool.name)}`}>
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
        <h3>Connect a client</h3>
        {configuration.data && <Snippets configuration={configuration.data} contract={contract} />}
      </section>
    </div>
  );
}
