// Who calls a contract: agents and tools of the recorded calls, and the agents that are pinned to one of its versions.
import { Link } from "wouter";
import { useCallers, useServedVersions } from "../../api/queries";
import { Empty, Loaded } from "../../parts/states";
import { DataTable } from "../../parts/table";
import { count, utcDay } from "../../parts/words";

export function CallersTab({ contract }: { contract: string }) {
  const callers = useCallers(contract);
  return (
    <div className="stack wide">
      <Loaded query={callers}>
        {({ days, callers: rows }) => {
          if (days === 0) {
            return (
              <Empty title="No calls are kept">
                <p>
                  With <code>impact_days = 30</code> under <code>[contracts]</code> in <code>weir.toml</code> the gateway keeps how the calls of 30 days looked, without their
                  texts. Then this page shows who calls, and the gate shows whose calls a change would refuse. All calls are in <Link href={`/audit?kind=call&contract=${encodeURIComponent(contract)}`}>the audit trail</Link>.
                </p>
              </Empty>
            );
          }
          if (rows.length === 0) {
            return (
              <Empty title={`No valid call in the last ${count(days, "day")}`}>
                <p>
                  <Link href={`/keys?make=yes&contract=${encodeURIComponent(contract)}`}>Make a key</Link> for an agent, or see <Link href={`/audit?contract=${encodeURIComponent(contract)}`}>what was refused</Link>.
                </p>
              </Empty>
            );
          }
          return (
            <section className="stack tight">
              <p className="soft">Valid calls of the last {count(days, "day")}. The gate tries a change against them.</p>
              <DataTable
                label="Callers of this contract"
                rows={rows}
                rowKey={({ agent, tool }) => `${agent} ${tool}`}
                columns={[
                  { head: "Agent", lead: true, cell: ({ agent }) => <strong>{agent}</strong> },
                  { head: "Tool", cell: ({ tool }) => <Link href={`/tools?tool=${encodeURIComponent(tool)}`}>{tool}</Link> },
                  { head: "Calls", number: true, cell: ({ calls }) => calls.toLocaleString("en") },
                  { head: "Last day", cell: ({ last_day_ms }) => utcDay(last_day_ms) },
                  { head: "", cell: ({ agent, tool }) => <Link href={`/audit?agent=${encodeURIComponent(agent)}&tool=${encodeURIComponent(tool)}`}>Its calls</Link> },
                ]}
              />
            </section>
          );
        }}
      </Loaded>
      <PinnedAgents contract={contract} />
    </div>
  );
}

function PinnedAgents({ contract }: { contract: string }) {
  const versions = useServedVersions();
  const pins = (versions.data?.pins ?? []).filter((pin) => pin.contract === contract);
  if (pins.length === 0) return null;
  return (
    <section className="stack tight" aria-labelledby="pinned-callers">
      <h2 id="pinned-callers">Pinned to a version</h2>
      <DataTable
        label="Agents that are pinned to a version"
        rows={pins}
        rowKey={({ agent }) => agent}
        columns={[
          { head: "Agent", lead: true, cell: ({ agent }) => <strong>{agent}</strong> },
          { head: "Version", cell: ({ major }) => <code>{`${contract}@${major}`}</code> },
          { head: "", cell: () => <Link href="/keys">Pins</Link> },
        ]}
      />
    </section>
  );
}
