// One record: its content, its receipt, the records of the same call, and its neighbours in the chain.
import { proveRecord, useCallRecords, type useRecord } from "../../api/trail";
import type { AuditRecord, Json } from "../../api/shapes";
import { setAddressValues } from "../../location";
import { Link } from "wouter";
import { Action } from "../../parts/action";
import { DecisionNote } from "../../parts/decision";
import { Loaded } from "../../parts/states";
import { DataTable } from "../../parts/table";
import { Badge, CodeBlock, CopyAction, Digest, pretty, Time, utcTime, type Tone } from "../../parts/words";
import { recordedDecision } from "../../policy";
import { mayDo } from "../../session";
import { SaveAction } from "./save";
import { recordSentence, subjectOf, textOf, workOf } from "./record-words";

const TONES: Record<string, Tone> = { ok: "good", refused: "warn", failed: "bad", unknown: "bad", cancelled: "" };

export function RecordOutcome({ record }: { record: AuditRecord }) {
  const outcome = textOf(record.outcome);
  const code = textOf(record.code ?? record.reason);
  return (
    <>
      {outcome && <Badge tone={TONES[outcome] ?? ""}>{outcome}</Badge>} {code && <code className="small">{code}</code>}
    </>
  );
}

export const openRecord = (hash: string) => setAddressValues({ record: hash }, { push: true });

interface DetailProps {
  /** Undefined until it is found, and where there is none. */
  record: AuditRecord | undefined;
  found: ReturnType<typeof useRecord>;
}

export function RecordDetail({ record, found }: DetailProps) {
  if (!record) {
    return (
      <Loaded query={found} lines={8}>
        {() => <p>No record of the trail has this hash. Retention may have removed it; if so, the trail records it.</p>}
      </Loaded>
    );
  }
  const callId = textOf(record.call_id);
  const decision = recordedDecision(record.policy);
  return (
    <div className="stack wide">
      <p className="sentence">{recordSentence(record)}</p>
      <dl className="facts">
        <dt>Time</dt>
        <dd>
          {utcTime(Date.parse(record.time))} <span className="soft">(<Time ms={Date.parse(record.time)} />)</span>
        </dd>
        <dt>Receipt</dt>
        <dd className="row">
          <code title={record.receipt}>{record.receipt.split(":").slice(0, 2).join(":")}:…</code>
          <CopyAction text={record.receipt} />
          <Action kind="compact" onPress={() => setAddressValues({ verify: record.receipt, record: "" }, { push: true })}>
            Verify it
          </Action>
          {mayDo("viewer") && record.kind === "call" && record.tool !== undefined && (
            <Link className="button compact" href={`/try?${new URLSearchParams({ tool: textOf(record.tool), agent: textOf(record.agent) })}`}>
              Try the tool
            </Link>
          )}
          <SaveAction title="Download proof" file={`proof-${record.seq}-${record.hash.slice(0, 8)}.json`} read={() => proveRecord(record)} isCompact />
        </dd>
      </dl>
      <p className="soft small">
        The proof is a file for <code>weir audit verify --file PROOF RECEIPT</code>, which needs no gateway. It holds this record and those after it, up to one that
        something else refers to; a receipt or head that was kept elsewhere makes it a proof.
      </p>
      {decision && <DecisionNote decision={decision} />}
      <section className="stack tight" aria-label="Its place in the chain">
        <h3>Its place in the chain</h3>
        <Loaded query={found} lines={3}>
          {(beside) => (
            <ol className="chain">
              <Neighbour word="before" record={beside?.before} missing={record.seq === 1 ? "It is the first of its chain." : "Retention removed the previous one."} />
              <li className="here">
                <span className="soft small">{record.seq}</span>
                <span>
                  <strong>
                    {workOf(record)} {subjectOf(record)}
                  </strong>{" "}
                  <Digest text={record.hash} />
                </span>
              </li>
              <Neighbour word="after" record={beside?.after} missing="It is the last of its chain." />
            </ol>
          )}
        </Loaded>
      </section>
      {callId && <CallRecords callId={callId} hash={record.hash} />}
      <section className="stack tight">
        <h3>As it was written</h3>
        <CodeBlock text={pretty(writtenRecord(record))} wraps label="Record" />
      </section>
    </div>
  );
}

/** A receipt is made from the record, and is not part of it. */
function writtenRecord({ receipt: _, ...written }: AuditRecord): Json {
  return written as Json;
}

function Neighbour({ word, record, missing }: { word: string; record: AuditRecord | null | undefined; missing: string }) {
  return (
    <li>
      <span className="soft small">{record?.seq}</span>
      {record ? (
        <span>
          <button type="button" className="open" aria-label={`The record ${word} it: ${workOf(record)} ${subjectOf(record)}`} onClick={() => openRecord(record.hash)}>
            {workOf(record)} {subjectOf(record)}
          </button>{" "}
          <Digest text={record.hash} />
        </span>
      ) : (
        <span className="soft">{missing}</span>
      )}
    </li>
  );
}

/** A write has a record from before it ran and one of its end. */
function CallRecords({ callId, hash }: { callId: string; hash: string }) {
  const records = useCallRecords(callId);
  return (
    <section className="stack tight" aria-label="Records of this call">
      <h3>This call</h3>
      <p className="row">
        <code>{callId}</code> <CopyAction text={callId} />
        <Action kind="compact" onPress={() => setAddressValues({ call: callId, record: "", before: "" }, { push: true })}>
          Show it alone
        </Action>
      </p>
      <Loaded query={records} lines={2}>
        {(all) => (
          <DataTable
            label="Records of this call"
            rows={all}
            rowKey={(record) => record.hash}
            current={hash}
            staysTable
            columns={[
              {
                head: "What",
                lead: true,
                cell: (record) => (
                  <button type="button" className="open" onClick={() => openRecord(record.hash)}>
                    {record.kind}
                  </button>
                ),
              },
              { head: "Time", cell: (record) => <Time ms={Date.parse(record.time)} /> },
              { head: "Outcome", cell: (record) => <RecordOutcome record={record} /> },
            ]}
          />
        )}
      </Loaded>
    </section>
  );
}
