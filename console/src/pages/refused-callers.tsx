// Why recent requests were answered with 401. Clients report little of it themselves.
import { useIdentityFailures } from "../api/queries";
import type { IdentityFailure } from "../api/shapes";
import { Loaded } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Time } from "../parts/words";

const COLUMNS: Column<IdentityFailure>[] = [
  { head: "Reason", lead: true, cell: (failure) => <strong>{failure.reason}</strong> },
  { head: "Endpoint", cell: (failure) => <code>{failure.endpoint}</code> },
  { head: "Holder", cell: (failure) => <Holder failure={failure} /> },
  { head: "Times", number: true, cell: (failure) => failure.count },
  { head: "Last", cell: (failure) => <Time ms={failure.last_ms} /> },
];

export function RefusedCallers() {
  const failures = useIdentityFailures();
  return (
    <section className="stack" aria-labelledby="refused-callers">
      <h2 id="refused-callers">Refused recently</h2>
      <Loaded query={failures} lines={3}>
        {(all) =>
          all.length === 0 ? (
            <p className="soft">No request without a valid key or token since this process started.</p>
          ) : (
            <DataTable label="Refused requests" columns={COLUMNS} rows={all} rowKey={keyOf} />
          )
        }
      </Loaded>
    </section>
  );
}

/** What the credential states about its holder; if it is not genuine, anyone may have written that. */
function Holder({ failure }: { failure: IdentityFailure }) {
  const { key_id, subject, client, issuer } = failure;
  const facts = [
    ["key", key_id],
    ["subject", subject],
    ["client", client],
    ["issuer", issuer],
  ].filter(([, value]) => value);
  if (facts.length === 0) return null;
  return (
    <div className="small">
      {facts.map(([name, value]) => (
        <div key={name}>
          <span className="soft">{name}</span> {value}
        </div>
      ))}
      {!failure.genuine && <div className="soft">according to the credential, which is not genuine</div>}
    </div>
  );
}

const keyOf = (failure: IdentityFailure) =>
  [failure.endpoint, failure.reason, failure.genuine, failure.key_id, failure.issuer, failure.subject, failure.client].join("\n");
