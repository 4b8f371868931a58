// The gateways that share the state.
import { useNodes } from "../../api/queries";
import { Empty, Loaded } from "../../parts/states";
import { DataTable } from "../../parts/table";
import { Badge, count, Digest, Time } from "../../parts/words";

export function NodesTab() {
  const nodes = useNodes();
  return (
    <Loaded query={nodes}>
      {({ generation, nodes: all }) => {
        if (all.length === 0) {
          return (
            <Empty title="A single gateway">
              <p>
                Its state is a local file. With <code>[state] url = "postgres://…"</code> in <code>weir.toml</code> several gateways share one state, and are listed here.
              </p>
            </Empty>
          );
        }
        const configurations = new Set(all.filter(({ live }) => live).map(({ configuration }) => configuration));
        return (
          <div className="stack">
            {configurations.size > 1 && (
              <p className="note warn">The nodes that run have {count(configurations.size, "configuration")}, which should be one: compare their weir.toml.</p>
            )}
            <DataTable
              label="Nodes"
              rows={all}
              rowKey={({ id }) => id}
              columns={[
                {
                  head: "Machine",
                  lead: true,
                  cell: ({ name, own }) => (
                    <span className="row">
                      <strong>{name}</strong> {own && <Badge tone="accent">this one</Badge>}
                    </span>
                  ),
                },
                { head: "State", cell: ({ live }) => (live ? <Badge tone="good">runs</Badge> : <Badge tone="bad">gone</Badge>) },
                { head: "Version", cell: ({ version }) => version },
                { head: "Configuration", cell: ({ configuration }) => <Digest text={configuration} /> },
                { head: "Started", cell: ({ started_ms }) => <Time ms={started_ms} /> },
                { head: "Behind", number: true, cell: ({ seen, live }) => (live ? count(Math.max(0, generation - seen), "change") : null) },
              ]}
            />
          </div>
        );
      }}
    </Loaded>
  );
}
