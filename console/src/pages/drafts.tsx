import { Link } from "wouter";
import { useDrafts } from "../api/queries";
import type { DraftView } from "../api/shapes";
import { useAddressValue } from "../location";
import { ChoiceField } from "../parts/fields";
import { PageHead } from "../parts/page";
import { Empty, Loaded } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Badge, ClassBadge, Time } from "../parts/words";

export const draftAddress = ({ contract, id }: Pick<DraftView, "contract" | "id">) =>
  `/contracts/${encodeURIComponent(contract)}?tab=drafts&draft=${encodeURIComponent(id)}`;

const COLUMNS: Column<DraftView>[] = [
  {
    head: "Contract",
    lead: true,
    cell: (draft) => (
      <Link href={draftAddress(draft)}>
        <strong>{draft.contract}</strong>
      </Link>
    ),
  },
  { head: "Change", cell: (draft) => <ClassBadge name={draft.class} /> },
  { head: "Version", cell: (draft) => <VersionStep draft={draft} /> },
  { head: "From", cell: (draft) => <code>{draft.created_by}</code> },
  { head: "Submitted", cell: (draft) => <Time ms={draft.created_ms} /> },
  {
    head: "Status",
    cell: (draft) =>
      draft.status === "pending" ? (
        <Badge tone="warn">waits for an {draft.needs}</Badge>
      ) : (
        <>
          {draft.status} <span className="soft">{draft.decided_by}</span>
        </>
      ),
  },
];

export function VersionStep({ draft }: { draft: Pick<DraftView, "base" | "version"> }) {
  return (
    <span className="mono">
      {draft.base ?? "nothing"} → {draft.version ?? "retired"}
    </span>
  );
}

const STATUSES: { value: DraftView["status"]; text: string }[] = [
  { value: "pending", text: "Waiting" },
  { value: "published", text: "Published" },
  { value: "discarded", text: "Rejected" },
  { value: "superseded", text: "Replaced by a later one" },
];

/** The most decided drafts that the gateway lists. Those that wait it lists all. */
const DECIDED_MAX = 200;

export function DraftsPage() {
  const [status, setStatus] = useAddressValue("status");
  const wanted = STATUSES.find(({ value }) => value === status)?.value ?? "pending";
  const drafts = useDrafts(wanted);
  return (
    <>
      <PageHead title="Waiting for review">Changes that were not published at once. Agents are served the version before until someone agrees.</PageHead>
      <div className="stack">
        <div className="filters">
          <ChoiceField
            label="Status"
            value={wanted}
            onChange={(value) => setStatus(value === "pending" ? "" : value)}
            options={STATUSES}
          />
        </div>
        <Loaded query={drafts}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title={wanted === "pending" ? "Nothing waits" : "No such draft"}>
                <p>
                  A change that needs a second look, or that breaks callers, appears here when a contract is edited or submitted.
                </p>
              </Empty>
            ) : (
              <>
                {wanted !== "pending" && rows.length >= DECIDED_MAX && <p className="soft">The newest {DECIDED_MAX}.</p>}
                <DataTable label="Drafts" columns={COLUMNS} rows={rows} rowKey={({ id }) => id} />
              </>
            )
          }
        </Loaded>
      </div>
    </>
  );
}
