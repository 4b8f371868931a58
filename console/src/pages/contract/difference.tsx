// A difference of two versions, by tool: what changed, how bad it is, why, and a value that shows it.
import type { ReactNode } from "react";
import type { AgentImpact, DiffItem, DiffReport, Finding, Impact, Json, ToolDocument } from "../../api/shapes";
import { Empty } from "../../parts/states";
import { DataTable } from "../../parts/table";
import { Badge, ClassBadge, CodeBlock, count, pretty, toneOfClass } from "../../parts/words";
import { isModelText, orderByTool, shownItems } from "./items";
import { NewTool } from "./new-tool";

/** A value with more lines is folded. */
const LINES_MAX = 12;

interface DifferenceProps {
  report: DiffReport;
  /** The change comes from another server, whose words an operator has to read. */
  isForeign?: boolean;
  /** The tools of the new document, for those that were added. */
  tools?: ToolDocument[];
  /** What can be done about a tool that was added. */
  aboutNewTool?: (name: string) => ReactNode;
}

export function Difference({ report, isForeign = false, tools = [], aboutNewTool }: DifferenceProps) {
  const items = shownItems(report.items);
  if (items.length === 0) return <Empty title={report.items.length === 0 ? "The two are the same" : "No change that a client sees"} />;
  return (
    <div className="stack">
      {isForeign && items.some(isModelText) && (
        <p className="note warn">
          <strong>The server changed words that models read: check them.</strong>
        </p>
      )}
      {orderByTool(items, isForeign).map(([tool, group]) => (
        <section key={tool} className="stack tight" aria-label={tool || "The contract"}>
          <h3 className="row">
            {tool ? <code>{tool}</code> : "The contract as a whole"}
            <span className="soft small">{count(group.length, "change")}</span>
          </h3>
          {group.map((item, index) => (
            <Change key={index} item={item} isText={isForeign && isModelText(item)}>
              {isNewTool(item) ? (
                <>
                  <NewTool item={item} tools={tools} />
                  {aboutNewTool?.(tool)}
                </>
              ) : (
                <Values item={item} />
              )}
            </Change>
          ))}
        </section>
      ))}
    </div>
  );
}

/** Each tool of a first version is new too. */
const isNewTool = ({ rule, tool }: DiffItem) => tool !== undefined && (rule === "tool-added" || rule === "first");

const SIDES = { input: "arguments", output: "result" };

/** `children` are the values, or explain more than the values do. */
function Change({ item, isText, children }: { item: DiffItem; isText: boolean; children: ReactNode }) {
  return (
    <article className={`change ${isText ? "warn" : toneOfClass(item.class)}`}>
      <div className="row">
        {isText ? <Badge tone="warn">text for the model</Badge> : <ClassBadge name={item.class} />}
        {item.side && <span className="soft small">{SIDES[item.side]}</span>}
        <code className="small">{item.path || "/"}</code>
      </div>
      {/* The reason quotes the words of the author of the change; long ones are in the values below. */}
      <p className="reason">{item.reason}</p>
      {children}
      {item.witness !== undefined && (
        <div className="stack tight">
          <span className="small">
            {item.side === "output" ? "This result may come now, and could not before:" : "This call was valid, and would be refused:"}
          </span>
          <CodeBlock text={pretty(item.witness)} wraps label="Witness" />
        </div>
      )}
      <div className="soft small">
        rule <code>{item.rule}</code>
      </div>
    </article>
  );
}

/** Values of at most this many characters are shown on one line. */
const SHORT_MAX = 60;

function Values({ item }: { item: DiffItem }) {
  if (item.old === null && item.new === null) return null;
  const texts = [item.old, item.new].map((value) => (value === null ? "nothing" : JSON.stringify(value)));
  if (texts.every((text) => text.length <= SHORT_MAX)) {
    return (
      <div className="short-values">
        <span>
          <span className="soft">before</span> <code>{texts[0]}</code>
        </span>
        <span>
          <span className="soft">after</span> <code>{texts[1]}</code>
        </span>
      </div>
    );
  }
  if (item.old === null) return <ValueText text={pretty(item.new)} label="After" />;
  return (
    <div className="before-after">
      <Value label="Before" value={item.old} />
      <Value label="After" value={item.new} />
    </div>
  );
}

function Value({ label, value }: { label: string; value: Json }) {
  const text = typeof value === "string" ? value : pretty(value);
  const shown = value === null ? <p className="soft">nothing</p> : <ValueText text={text} label={label} />;
  return (
    <div className="stack tight">
      <span className="soft">{label}</span>
      {shown}
    </div>
  );
}

function ValueText({ text, label }: { text: string; label: string }) {
  const block = (
    <div className="code wraps">
      <pre tabIndex={0} role="group" aria-label={label}>{text}</pre>
    </div>
  );
  if (text.split("\n").length <= LINES_MAX) return block;
  return (
    <details>
      <summary className="small">{count(text.split("\n").length, "line")}</summary>
      {block}
    </details>
  );
}

/** Whose calls of the past would fail. */
export function Callers({ impact }: { impact: Impact | null | undefined }) {
  if (!impact) {
    return (
      <p className="soft">
        Past calls are not kept, so no caller can be named. Set <code>impact_days</code> under <code>[contracts]</code> to keep them.
      </p>
    );
  }
  if (impact.calls === 0) return <p className="soft">No call of the last {count(impact.days, "day")} to judge by.</p>;
  const kept = `${count(impact.calls, "call")} of the last ${count(impact.days, "day")}`;
  if (impact.agents.length === 0) return <p>{kept}: all would pass.</p>;
  return (
    <div className="stack tight">
      <p className="soft">Judged by {kept}.</p>
      <DataTable
        label="Callers"
        rows={impact.agents}
        rowKey={({ agent, tool }) => `${agent} ${tool}`}
        columns={[
          { head: "Agent", lead: true, cell: ({ agent }) => agent },
          { head: "Tool", cell: ({ tool }) => <code>{tool}</code> },
          { head: "Would fail", number: true, cell: ({ fail, calls }) => `${fail.toLocaleString("en")} of ${calls.toLocaleString("en")}` },
          ...(impact.agents.some(({ cannot_tell }) => cannot_tell > 0)
            ? [{ head: "Cannot tell", number: true, cell: ({ cannot_tell }: AgentImpact) => cannot_tell || null }]
            : []),
          { head: "Why", cell: ({ reasons }) => reasons.map((reason) => <div key={reason}>{reason}</div>) },
        ]}
      />
    </div>
  );
}

export function Findings({ findings }: { findings: Finding[] }) {
  if (findings.length === 0) return <p className="soft">Lint finds nothing that the live version does not have.</p>;
  const tones = { error: "bad", warning: "warn", info: "" } as const;
  return (
    <ul className="stack tight">
      {findings.map((finding, index) => (
        <li key={index} className="change">
          <div className="row">
            <Badge tone={tones[finding.level]}>{finding.level}</Badge>
            <code>{[finding.tool, finding.field].filter(Boolean).join(" / ")}</code>
          </div>
          <p>{finding.message}</p>
          {finding.hint && <p className="soft small">{finding.hint}</p>}
        </li>
      ))}
    </ul>
  );
}
