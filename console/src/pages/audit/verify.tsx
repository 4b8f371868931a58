// Whether the trail is whole, and whether the records of receipts that callers kept are in it.
import { useEffect, useState } from "react";
import { verifyTrail } from "../../api/trail";
import type { AuditReport, ReceiptCheck } from "../../api/shapes";
import { setAddressValues } from "../../location";
import { useAttempt } from "../../parts/attempt";
import { Action } from "../../parts/action";
import { FieldFrame } from "../../parts/fields";
import { ProblemNote } from "../../parts/states";
import { Badge, CodeBlock, count, Digest, pretty, Time, type Tone } from "../../parts/words";
import { findReceipts, receiptFault } from "./receipts";
import { subjectOf, textOf } from "./record-words";

/** It verifies as soon as it is opened. `begun` is a receipt to begin with. */
export function VerifyForm({ begun }: { begun: string }) {
  const [text, setText] = useState(begun);
  const [report, setReport] = useState<AuditReport | null>(null);
  const { error, isPending, attempt } = useAttempt();
  const receipts = findReceipts(text);
  const fault = receiptFault(text);
  const verify = async () => {
    setReport(null);
    await attempt(async () => {
      setReport(await verifyTrail(receipts));
    });
  };
  useEffect(() => void verify(), []);
  return (
    <div className="stack">
      {isPending && report === null && <p role="status">The trail is verified…</p>}
      <FieldFrame
        label="Receipts that callers kept"
        help={receipts.length > 0 ? `${count(receipts.length, "receipt")}, looked for in the trail.` : "Optional: paste them as they are, also in the middle of a log or JSON."}
        fault={fault}
      >
        {(ids) => <textarea {...ids} rows={4} value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} autoComplete="off" />}
      </FieldFrame>
      <div>
        <Action kind="main" onPress={() => void verify()} isPending={isPending} isDisabled={fault !== undefined}>
          {receipts.length > 0 ? "Verify the trail and the receipts" : "Verify it again"}
        </Action>
      </div>
      {error != null && <ProblemNote error={error} retry={() => void verify()} />}
      {report && <Report report={report} />}
    </div>
  );
}

function Report({ report }: { report: AuditReport }) {
  const hasFindings = report.findings_count > 0;
  return (
    <div className="stack">
      <div className={`note ${hasFindings ? "bad" : "good"} stack tight`} role="status">
        <strong>{hasFindings ? `${count(report.findings_count, "finding")}: records were changed, moved, deleted or cut` : wholeTrailText(report)}</strong>
        <p>
          {count(report.records, "record")} in {count(report.chains, "chain")}, {report.bytes.toLocaleString("en")} bytes.
        </p>
        {report.receipts.some(({ status }) => status === "missing" || status === "replaced") && <p>A receipt that was copied wrong, or is of another gateway, is a finding too.</p>}
        {hasFindings && (
          <p>
            Copy the folder <code>audit</code> of the state before anything else is done to it, and compare it with a backup or an export. What follows a finding
            is chained to it, and cannot be made up later.
          </p>
        )}
      </div>
      {report.open_ends.length > 0 && (
        <section className="stack tight">
          <h3>What this does not show</h3>
          <p className="soft small">
            A cut of the records after these would not be found: no other chain and no receipt pasted above names a later one. Heads that were kept elsewhere show it.
          </p>
          <ul className="stack tight" aria-label="Open ends">
            {report.open_ends.map(({ chain, after, last }) => (
              <li key={chain} className="small">
                <code>{chain}</code> after record {after}, which has {last} now
              </li>
            ))}
          </ul>
        </section>
      )}
      {report.receipts.length > 0 && (
        <section className="stack tight">
          <h3>Receipts</h3>
          <ul className="stack tight" aria-label="Receipts">
            {report.receipts.map((check) => (
              <Receipt key={check.receipt} check={check} />
            ))}
          </ul>
        </section>
      )}
      {report.findings.length > 0 && <CodeBlock text={pretty(report.findings)} wraps label="Findings" />}
      {report.warnings_count > 0 && <CodeBlock text={pretty(report.warnings)} wraps label="Warnings" />}
      <section className="stack tight">
        <h3>Heads</h3>
        <p className="soft small">Keep them elsewhere: one receipt, pasted above later, proves that nothing before it was cut.</p>
        <CodeBlock text={report.heads.join("\n")} wraps label="Heads" />
      </section>
    </div>
  );
}

/** Claims no more than was shown: a chain whose end is recorded nowhere else may have been cut. */
function wholeTrailText({ open_ends }: AuditReport) {
  const shown = "No record was changed, deleted or moved";
  return open_ends.length === 0 ? `${shown}, and none was cut` : `${shown}. A cut would not be found at the end of ${count(open_ends.length, "chain")}`;
}

const STATUSES: Record<ReceiptCheck["status"], { tone: Tone; text: string }> = {
  present: { tone: "good", text: "Exactly this record is in the trail." },
  removed: { tone: "warn", text: "It was in the trail; retention removed it and stated so." },
  missing: { tone: "bad", text: "No record of the trail has this number in this chain." },
  replaced: { tone: "bad", text: "Another record has its number: the trail is not the one that the receipt is of." },
};

function Receipt({ check }: { check: ReceiptCheck }) {
  const { tone, text } = STATUSES[check.status];
  const { record } = check;
  return (
    <li className={`change ${tone}`}>
      <div className="row">
        <Badge tone={tone}>{check.status}</Badge>
        <code className="small">{check.receipt.split(":").slice(0, 2).join(":")}</code>
        <Digest text={check.receipt.split(":").at(-1) ?? ""} />
      </div>
      <p className="small">{text}</p>
      {record && (
        <p className="row">
          <span>
            {record.kind} <code>{subjectOf(record)}</code> {textOf(record.outcome)} <span className="soft">{textOf(record.agent ?? record.by)}</span>{" "}
            <Time ms={Date.parse(record.time)} />
          </span>
          <Action kind="compact" onPress={() => setAddressValues({ verify: "", record: record.hash }, { push: true })}>
            Open it
          </Action>
        </p>
      )}
    </li>
  );
}
