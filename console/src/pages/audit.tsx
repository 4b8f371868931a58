import { useState } from "react";
import { exportRecords, readAuditReport, useAudit, type AuditFilter } from "../api/queries";
import type { AuditRecord, AuditReport, Json } from "../api/shapes";
import { setAddressValues, useAddressValue } from "../location";
import { Action } from "../parts/action";
import { CheckField, ChoiceField, TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { PageHead } from "../parts/page";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Badge, CodeBlock, count, Digest, pretty, Time, type Tone } from "../parts/words";

const PAGE = 100;
const TONES: Record<string, Tone> = { ok: "good", refused: "warn", failed: "bad", unknown: "bad", cancelled: "" };

const textOf = (value: Json | undefined) => (typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value));

/** A record in one line: what was done, to what. */
export function subjectOf(record: AuditRecord): string {
  const named = record.tool ?? record.subject ?? record.path ?? record.chain ?? "";
  return textOf(named);
}

const COLUMNS = (open: (record: AuditRecord) => void): Column<AuditRecord>[] => [
  {
    head: "Time",
    lead: true,
    cell: (record) => (
      <button type="button" className="open" onClick={() => open(record)}>
        <Time ms={Date.parse(record.time)} />
      </button>
    ),
  },
  {
    head: "What",
    cell: (record) => (
      <>
        {record.kind}
        {record.act !== undefined && <span className="soft"> {textOf(record.act)}</span>}
      </>
    ),
  },
  { head: "Of", cell: (record) => <code>{subjectOf(record)}</code> },
  { head: "By", cell: (record) => textOf(record.agent ?? record.by) || null },
  {
    head: "Outcome",
    cell: (record) => {
      const outcome = textOf(record.outcome);
      const code = textOf(record.code ?? record.reason);
      return outcome || code ? (
        <>
          {outcome && <Badge tone={TONES[outcome] ?? ""}>{outcome}</Badge>} {code && <code className="small">{code}</code>}
        </>
      ) : null;
    },
  },
  { head: "Record", number: true, cell: (record) => record.seq },
];

export function AuditPage() {
  const [kind] = useAddressValue("kind");
  const [agent] = useAddressValue("agent");
  const [tool] = useAddressValue("tool");
  const [contract] = useAddressValue("contract");
  const [outcome] = useAddressValue("outcome");
  const [callId] = useAddressValue("call");
  const [text] = useAddressValue("text");
  const [since] = useAddressValue("since");
  const [until] = useAddressValue("until");
  const [follow, setFollow] = useAddressValue("follow");
  const [open, setOpen] = useAddressValue("record");
  const filter: AuditFilter = {
    kind: kind || undefined,
    agent: agent || undefined,
    tool: tool || undefined,
    contract: contract || undefined,
    outcome: outcome || undefined,
    call_id: callId || undefined,
    text: text || undefined,
    since: since || undefined,
    until: until || undefined,
    limit: PAGE,
  };
  const records = useAudit(filter, follow !== "" && until === "");
  const set = (name: string) => (value: string) => setAddressValues({ [name]: value, until: name === "until" ? value : "" });
  return (
    <>
      <PageHead
        title="Audit"
        actions={
          <>
            <Export filter={filter} /> <Verify />
          </>
        }
      >
        Every call, refusal and act of an operator, newest first. Each record holds the hash of the one before it.
      </PageHead>
      <div className="stack">
        <div className="filters">
          <ChoiceField label="Kind" value={kind} onChange={set("kind")} none="All" options={["call", "intent", "refused", "admin", "chain"]} />
          <ChoiceField label="Outcome" value={outcome} onChange={set("outcome")} none="All" options={["ok", "refused", "failed", "cancelled", "unknown"]} />
          <TextField label="Agent" value={agent} onChange={set("agent")} />
          <TextField label="Tool" value={tool} onChange={set("tool")} />
          <TextField label="Contract" value={contract} onChange={set("contract")} />
          <TextField label="Call id" value={callId} onChange={set("call")} placeholder="c_…" />
          <TextField label="Contains" value={text} onChange={set("text")} placeholder="a digest, a name" />
          <TextField label="Since" value={since} onChange={set("since")} placeholder="2h, 7d or a date" />
          <CheckField label="Follow" value={follow !== ""} onChange={(yes) => setFollow(yes ? "yes" : "")} />
        </div>
        <Loaded query={records} lines={8}>
          {(found) => {
            const newest = [...found].reverse();
            const chosen = found.find((record) => record.hash === open);
            return (
              <>
                {newest.length === 0 ? (
                  <Empty title="No record fits the filters">
                    <Action onPress={() => setAddressValues({ kind: "", agent: "", tool: "", contract: "", outcome: "", call: "", text: "", since: "", until: "" })}>
                      Show all
                    </Action>
                  </Empty>
                ) : (
                  <DataTable label="Records" columns={COLUMNS((record) => setOpen(record.hash, { push: true }))} rows={newest} rowKey={({ hash }) => hash} current={open} />
                )}
                <div className="row">
                  {until && <Action onPress={() => setAddressValues({ until: "" })}>Back to the newest</Action>}
                  {found.length === PAGE && <Action onPress={() => setAddressValues({ until: found[0]?.time ?? "" }, { push: true })}>Older</Action>}
                </div>
                <Overlay title={chosen ? `${chosen.kind} ${subjectOf(chosen)}` : ""} isOpen={chosen !== undefined} onClose={() => setOpen("")}>
                  {chosen && <RecordDetail record={chosen} all={newest} />}
                </Overlay>
              </>
            );
          }}
        </Loaded>
      </div>
    </>
  );
}

function RecordDetail({ record, all }: { record: AuditRecord; all: AuditRecord[] }) {
  const before = all.find(({ hash }) => hash === record.prev);
  const after = all.find(({ prev }) => prev === record.hash);
  const callId = textOf(record.call_id);
  return (
    <div className="stack">
      <dl className="facts">
        <dt>Time</dt>
        <dd>{new Date(record.time).toLocaleString()}</dd>
        <dt>Record</dt>
        <dd>
          {record.seq} of its chain, hash <Digest text={record.hash} />
        </dd>
        <dt>Before it</dt>
        <dd>
          <Digest text={record.prev} /> {before ? `${before.kind} ${subjectOf(before)}` : <span className="soft">not on this page</span>}
        </dd>
        <dt>After it</dt>
        <dd>{after ? `${after.kind} ${subjectOf(after)}` : <span className="soft">not on this page, or none</span>}</dd>
      </dl>
      {callId && (
        <div className="row">
          <Action onPress={() => setAddressValues({ call: callId, record: "", until: "" }, { push: true })}>All records of this call</Action>
        </div>
      )}
      <CodeBlock text={pretty(record as unknown as Json)} wraps label="Record" />
    </div>
  );
}

/** Saves all records that fit the filters, as they were written. */
function Export({ filter }: { filter: AuditFilter }) {
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const save = async () => {
    setPending(true);
    setError(null);
    try {
      const address = URL.createObjectURL(await exportRecords(filter));
      Object.assign(document.createElement("a"), { href: address, download: "audit.jsonl" }).click();
      URL.revokeObjectURL(address);
    } catch (caught) {
      setError(caught);
    }
    setPending(false);
  };
  return (
    <>
      <Action onPress={() => void save()} isPending={isPending}>
        Export
      </Action>
      <Overlay title="Export" kind="dialog" isOpen={error !== null} onClose={() => setError(null)}>
        {error != null && <ProblemNote error={error} retry={() => void save()} />}
      </Overlay>
    </>
  );
}

function Verify() {
  const [report, setReport] = useState<AuditReport | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const verify = async () => {
    setPending(true);
    setError(null);
    try {
      setReport(await readAuditReport());
    } catch (caught) {
      setError(caught);
    }
    setPending(false);
  };
  const close = () => {
    setReport(null);
    setError(null);
  };
  return (
    <>
      <Action onPress={() => void verify()} isPending={isPending}>
        Verify the trail
      </Action>
      <Overlay title="The trail" kind="dialog" isOpen={report !== null || error !== null} onClose={close}>
        {error != null && <ProblemNote error={error} retry={() => void verify()} />}
        {report && (
          <>
            <div className={`note ${report.findings_count > 0 ? "bad" : "good"}`} role="status">
              <strong>
                {report.findings_count > 0 ? `${count(report.findings_count, "finding")}: records were changed, moved, deleted or cut` : "No record was changed, deleted, moved or cut"}
              </strong>
              <p>
                {count(report.records, "record")} in {count(report.chains, "chain")}, {report.bytes.toLocaleString("en")} bytes.
              </p>
            </div>
            {report.findings.length > 0 && <CodeBlock text={pretty(report.findings)} wraps label="Findings" />}
            {report.warnings_count > 0 && <CodeBlock text={pretty(report.warnings)} wraps label="Warnings" />}
            <div className="stack tight">
              <h3>Heads</h3>
              <p className="soft small">Keep them elsewhere: one of them later proves that nothing before it was cut.</p>
              <CodeBlock text={report.heads.join("\n")} wraps label="Heads" />
            </div>
          </>
        )}
      </Overlay>
    </>
  );
}
