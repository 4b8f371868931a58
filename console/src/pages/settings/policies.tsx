// The policies in force, and what is wrong with their files. They can only be changed in the files.
import { usePolicies } from "../../api/queries";
import type { PolicyNote, PolicyStatus, PolicyView } from "../../api/shapes";
import type { Fault } from "../../api/problem";
import { useAddressValue } from "../../location";
import { Empty, FaultList, Loaded } from "../../parts/states";
import { DataTable, type Column } from "../../parts/table";
import { Badge, count } from "../../parts/words";
import { byFile } from "./fault-files";
import { PolicyCheck } from "./policy-check";

const MODES: Record<PolicyStatus["mode"], string> = {
  enforce: "what they deny is hidden or refused",
  audit: "what they would deny still runs, and is recorded in the trail",
};
const DEFAULTS: Record<PolicyStatus["default"], string> = {
  permit: "what keys and tokens allow is allowed, and policies take away",
  deny: "only what a permit names is allowed",
};

const COLUMNS: Column<PolicyView>[] = [
  { head: "Policy", lead: true, cell: (policy) => <code>{policy.id}</code> },
  { head: "Effect", cell: (policy) => <Badge tone={policy.effect === "forbid" ? "warn" : "good"}>{policy.effect}</Badge> },
  { head: "Decides", cell: (policy) => (policy.reads_arguments ? "each call, by its arguments" : "once for each caller and tool") },
  { head: "Message to those it denies", cell: (policy) => policy.message },
  {
    head: "Written in",
    cell: (policy) => (
      <code>
        {policy.file}:{policy.line}
      </code>
    ),
  },
];

export function PoliciesTab() {
  const policies = usePolicies();
  const [chosen] = useAddressValue("policy");
  return (
    <Loaded query={policies} lines={8}>
      {(status) => (
        <div className="stack wide">
          <dl className="facts">
            <dt>Mode</dt>
            <dd>
              <Badge tone={status.mode === "audit" ? "warn" : ""}>{status.mode}</Badge> {MODES[status.mode]}
            </dd>
            <dt>Default</dt>
            <dd>
              <Badge>{status.default}</Badge> {DEFAULTS[status.default]}
            </dd>
          </dl>
          <FileFaults faults={status.problems as unknown as Fault[]} />
          {status.policies.length > 0 ? (
            <DataTable label="Policies" rows={status.policies} rowKey={({ id }) => id} columns={COLUMNS} current={chosen} />
          ) : (
            <Empty title="No policy is in force">
              <p>
                Policies define which arguments, groups and kinds of tools a caller may use, beyond its key. Write them in Cedar, in <code>*.cedar</code> files of the
                folder <code>policies</code> next to <code>weir.toml</code>; <code>weir policy schema</code> prints what they can name, and <code>weir policy check</code>{" "}
                reports what is wrong.
              </p>
            </Empty>
          )}
          <PolicyCheck />
          {status.notes.length > 0 && <Unread notes={status.notes} />}
        </div>
      )}
    </Loaded>
  );
}

function FileFaults({ faults }: { faults: Fault[] }) {
  if (faults.length === 0) return null;
  return (
    <section className="note bad stack tight" aria-label="Problems">
      <strong>{count(faults.length, "problem")}: a changed file is not applied until it has none</strong>
      {byFile(faults).map(([file, own]) => (
        <div key={file} className="stack tight">
          <h3>
            <code>{file}</code>
          </h3>
          <FaultList faults={own} />
        </div>
      ))}
    </section>
  );
}

function Unread({ notes }: { notes: PolicyNote[] }) {
  return (
    <details>
      <summary>{count(notes.length, "argument")} that policies cannot read, or not in full</summary>
      <DataTable
        label="Arguments that policies cannot read"
        rows={notes}
        rowKey={({ tool, argument }) => `${tool} ${argument}`}
        columns={[
          { head: "Tool", lead: true, cell: (note) => <code>{note.tool}</code> },
          { head: "Argument", cell: (note) => <code>{note.argument}</code> },
          { head: "Why", cell: (note) => note.why },
        ]}
      />
    </details>
  );
}
