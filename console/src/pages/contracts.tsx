import { Link } from "wouter";
import { useContracts } from "../api/queries";
import type { ContractView } from "../api/shapes";
import { TextField } from "../parts/fields";
import { PageHead } from "../parts/page";
import { Empty, FaultList, Loaded } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Badge, count } from "../parts/words";
import { useAddressValue } from "../location";

const ORIGINS: Record<string, string> = { file: "file", api: "admin API", code: "plugin", upstream: "other server" };

const COLUMNS: Column<ContractView>[] = [
  {
    head: "Contract",
    lead: true,
    cell: ({ name }) => (
      <Link href={`/contracts/${encodeURIComponent(name)}`}>
        <strong>{name}</strong>
      </Link>
    ),
  },
  {
    head: "Live version",
    cell: ({ version, rolled_back }) => (
      <>
        {version ? <span className="mono">{version}</span> : <Badge>not served</Badge>}
        {rolled_back && <div className="soft">went back from {rolled_back}</div>}
      </>
    ),
  },
  { head: "Tools", number: true, cell: ({ tools }) => tools.length },
  { head: "Changed in", cell: ({ origin, owner }) => <span title={owner ?? undefined}>{ORIGINS[origin] ?? origin}</span> },
  {
    head: "Waiting",
    cell: ({ name, pending }) =>
      pending.length > 0 ? (
        <Link href={`/contracts/${encodeURIComponent(name)}?tab=drafts`}>{count(pending.length, "draft")}</Link>
      ) : null,
  },
];

export function ContractsPage() {
  const contracts = useContracts();
  const [text, setText] = useAddressValue("q");
  return (
    <>
      <PageHead title="Contracts">
        A contract is a named, versioned set of tools. What breaks callers waits here until someone agrees.
      </PageHead>
      <Loaded query={contracts}>
        {({ contracts: all, refused, waiting }) => (
          <div className="stack wide">
            {refused.map((file) => (
              <section key={`${file.kind} ${file.file}`} className="note bad stack tight">
                <h2>
                  Refused {file.kind}: <code>{file.file}</code>
                </h2>
                <p className="soft">The version published before is still served. Correct the file; it is read again when it is saved.</p>
                <FaultList faults={file.problems as never} />
              </section>
            ))}
            {waiting.map((file) => (
              <section key={file.file} className="note warn">
                <strong>
                  Waiting for its source: <code>{file.file}</code>
                </strong>
                <p>{file.reason}</p>
              </section>
            ))}
            {all.length === 0 ? (
              <Empty title="No contract yet">
                <p>
                  <Link href="/builder">Make one in the builder</Link> from a table or a file. In a terminal, <code>weir draft prices.csv &gt; prices.yaml</code> writes one
                  for the contracts folder.
                </p>
              </Empty>
            ) : (
              <div className="stack">
                <div className="filters">
                  <TextField type="search" label="Find" value={text} onChange={setText} placeholder="Contract or tool" />
                </div>
                <ContractTable all={all} text={text} />
              </div>
            )}
          </div>
        )}
      </Loaded>
    </>
  );
}

function ContractTable({ all, text }: { all: ContractView[]; text: string }) {
  const wanted = text.toLowerCase();
  const rows = all.filter(({ name, tools }) => [name, ...tools].some((word) => word.toLowerCase().includes(wanted)));
  if (rows.length === 0) return <Empty title="No contract or tool has this name" />;
  return <DataTable label="Contracts" columns={COLUMNS} rows={rows} rowKey={({ name }) => name} />;
}
