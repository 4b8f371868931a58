import type { ReactNode } from "react";
import { exportRecords, placeOfRecord, useAudit, useRecord, useTrailFailure, type AuditFilter } from "../api/trail";
import { useKeys } from "../api/queries";
import type { AuditRecord } from "../api/shapes";
import { setAddressValues, useAddressValue } from "../location";
import { Action } from "../parts/action";
import { CheckField, ChoiceField, TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { useNarrow } from "../parts/narrow";
import { PageHead } from "../parts/page";
import { Empty, Loaded } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Time } from "../parts/words";
import { mayDo } from "../session";
import { dayAfter, dayOf } from "./audit/days";
import { openRecord, RecordDetail, RecordOutcome } from "./audit/record";
import { subjectOf, textOf, workOf } from "./audit/record-words";
import { SaveAction } from "./audit/save";
import { VerifyForm } from "./audit/verify";

const PAGE = 100;

const COLUMNS: Column<AuditRecord>[] = [
  {
    head: "Time",
    lead: true,
    cell: (record) => (
      <button type="button" className="open" onClick={() => openRecord(record.hash)}>
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
    cell: (record) => (record.outcome ?? record.code ?? record.reason) === undefined ? null : <RecordOutcome record={record} />,
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
  const [to] = useAddressValue("to");
  const [before] = useAddressValue("before");
  const [follow, setFollow] = useAddressValue("follow");
  const [open, setOpen] = useAddressValue("record");
  const [verify, setVerify] = useAddressValue("verify");
  const isFailing = useTrailFailure().data === true;
  // While one of both days is being changed, the other may be on its wrong side.
  const isReversed = to !== "" && to < dayOf(since);
  const filter: AuditFilter = {
    kind: kind || undefined,
    agent: agent || undefined,
    tool: tool || undefined,
    contract: contract || undefined,
    outcome: outcome || undefined,
    call_id: callId || undefined,
    text: text || undefined,
    since: since || undefined,
    until: isReversed ? undefined : dayAfter(to),
    before: before || undefined,
    limit: PAGE,
  };
  const records = useAudit(filter, follow !== "" && before === "");
  const listed = records.data?.find(({ hash }) => hash === open);
  const found = useRecord(open, listed?.time);
  const opened = listed ?? found.data?.record;
  const keys = useKeys(mayDo("viewer"));
  const agents = [...new Set([...(keys.data ?? []).map((key) => key.agent), ...(records.data ?? []).map((record) => textOf(record.agent))])].filter(Boolean).sort();
  const set = (name: string) => (value: string) => setAddressValues({ [name]: value, before: "" });
  return (
    <>
      <PageHead
        title="Audit"
        actions={
          <>
            <SaveAction title="Export" file="audit.jsonl" read={() => exportRecords(filter)} />
            <Action onPress={() => setVerify("yes", { push: true })}>Verify the trail</Action>
          </>
        }
      >
        Every call, refusal and act of an operator, newest first. Each record holds the hash of the one before it.
      </PageHead>
      <div className="stack">
        {isFailing && (
          <div className="note bad" role="alert">
            <strong>The trail cannot be written, so calls are refused.</strong>
            <p>Look at the disk of the state folder: whether it is full, and whether the gateway may write there. Calls continue as soon as it can.</p>
          </div>
        )}
        <Filters count={[kind, agent, tool, contract, outcome, callId, text, since, to].filter(Boolean).length}>
          <ChoiceField label="Kind" value={kind} onChange={set("kind")} none="All" options={["call", "intent", "refused", "admin", "chain"]} />
          <ChoiceField label="Outcome" value={outcome} onChange={set("outcome")} none="All" options={["ok", "refused", "failed", "cancelled", "unknown"]} />
          <TextField label="Agent" value={agent} onChange={set("agent")} list={agents} />
          <TextField label="Tool" value={tool} onChange={set("tool")} />
          <TextField label="Contract" value={contract} onChange={set("contract")} />
          <TextField label="Call id" value={callId} onChange={set("call")} placeholder="c_…" />
          <TextField label="Contains" value={text} onChange={set("text")} placeholder="a digest, a name" />
          <TextField type="date" label="From" value={dayOf(since)} onChange={set("since")} help={since && dayOf(since) === "" ? `Now: ${since} ago` : "Days are UTC."} />
          <TextField type="date" label="To" value={to} onChange={set("to")} help="That day is in it." fault={isReversed ? "This day is before the first one." : undefined} />
          <CheckField label="Follow" value={follow !== ""} onChange={(yes) => setFollow(yes ? "yes" : "")} />
        </Filters>
        <Loaded query={records} lines={8}>
          {(page) => {
            const last = page.at(-1);
            return (
              <>
                {last === undefined ? (
                  <Empty title="No record fits the filters">
                    <Action onPress={() => setAddressValues({ kind: "", agent: "", tool: "", contract: "", outcome: "", call: "", text: "", since: "", to: "", before: "" })}>
                      Show all
                    </Action>
                  </Empty>
                ) : (
                  <DataTable label="Records" columns={COLUMNS} rows={page} rowKey={({ hash }) => hash} current={open} onRow={({ hash }) => openRecord(hash)} />
                )}
                <div className="row">
                  {before && <Action onPress={() => setAddressValues({ before: "" })}>Back to the newest</Action>}
                  {last && page.length === PAGE && <Action onPress={() => setAddressValues({ before: placeOfRecord(last) }, { push: true })}>Older</Action>}
                </div>
              </>
            );
          }}
        </Loaded>
      </div>
      <Overlay title={opened ? `${workOf(opened)} ${subjectOf(opened)}` : "A record"} isOpen={open !== ""} onClose={() => setOpen("")}>
        {open && <RecordDetail record={opened} found={found} />}
      </Overlay>
      <Overlay title="Verify the trail" isOpen={verify !== ""} onClose={() => setVerify("")}>
        {verify && <VerifyForm key={verify} begun={verify === "yes" ? "" : verify} />}
      </Overlay>
    </>
  );
}

/** On a narrow page the filters are folded, so that records are seen. */
function Filters({ count, children }: { count: number; children: ReactNode }) {
  const isNarrow = useNarrow();
  if (!isNarrow) return <div className="filters">{children}</div>;
  return (
    <details>
      <summary>Filters{count > 0 && ` (${count})`}</summary>
      <div className="filters folded">{children}</div>
    </details>
  );
}

