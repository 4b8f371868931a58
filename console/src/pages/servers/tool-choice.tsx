// The step that chooses among the tools of a server: each with what it costs, a tick, and a name.
import type { ContractDocument, UpstreamOffer } from "../../api/shapes";
import { Action, GuardedAction } from "../../parts/action";
import { DataTable } from "../../parts/table";
import { count, Digest } from "../../parts/words";
import { ReachBadge } from "../tools";
import { doubleNames, isPattern, isToolName, otherNames, tickItem, type ToolChoice } from "./choice";

interface ChoiceProps {
  /** Everything that the server offers, under its own names. */
  offer: UpstreamOffer;
  /** The text in front of every name. */
  prefix: string;
  choice: ToolChoice;
  onChange: (choice: ToolChoice) => void;
  onCheck: () => void;
  isPending: boolean;
  /** What the choice costs, where it was checked at the server. */
  checked: UpstreamOffer | null;
}

export function ToolChoiceStep({ offer, prefix, choice, onChange, onCheck, isPending, checked }: ChoiceProps) {
  const { tools: documents } = offer.document as unknown as ContractDocument;
  const rows = offer.tools;
  const isTaken = (from: string) => !choice.left.includes(from);
  const taken = rows.filter(({ from }) => isTaken(from));
  const tokens = taken.reduce((sum, tool) => sum + tool.tokens, 0);
  const all = rows.reduce((sum, tool) => sum + tool.tokens, 0);
  const doubles = doubleNames(rows.map(({ from }) => from), choice);
  const tools = rows.map(({ from }) => from);
  const otherLeft = choice.left.filter((from) => !tools.includes(from));
  const tick = (from: string, isTicked: boolean) => onChange(tickItem(choice, from, isTicked));
  const name = (from: string, next: string) => onChange({ ...choice, names: { ...choice.names, [from]: next.trim() } });
  const isChanged = choice.left.length > 0 || otherNames(choice).length > 0;
  return (
    <section className="stack" aria-label="Which tools">
      <h3>Which tools, and under which names</h3>
      <p className="soft small">
        Fewer tools cost a model less and leave it fewer ways to go wrong. A tool that the server adds later waits until someone publishes it.
      </p>
      <DataTable
        label="Tools that it offers"
        rows={rows}
        rowKey={(tool) => tool.from}
        columns={[
          {
            head: "Tool",
            lead: true,
            cell: ({ from, name }) => (
              <>
                <label className="check">
                  <input type="checkbox" checked={isTaken(from)} disabled={isPattern(from)} onChange={(event) => tick(from, event.target.checked)} />
                  <code>{from}</code>
                </label>
                <div className="soft model-text">{documents.find((document) => document.name === name)?.description}</div>
              </>
            ),
          },
          { head: "Agents see", cell: ({ from }) => isTaken(from) && <NameCell from={from} prefix={prefix} choice={choice} doubles={doubles} onName={name} /> },
          { head: "Tokens", number: true, cell: (tool) => tool.tokens.toLocaleString("en") },
          { head: "Reach", cell: (tool) => <ToolReach documents={documents} name={tool.name} /> },
        ]}
      />
      <div className="row ends">
        <p role="status" aria-label="What the choice costs">
          <strong>{taken.length}</strong> of {count(rows.length, "tool")}, about <strong>{(checked?.tokens ?? tokens).toLocaleString("en")}</strong> of {all.toLocaleString("en")} tokens
        </p>
        <div className="row">
          <Action kind="compact" isDisabled={taken.length === rows.length} onPress={() => onChange({ ...choice, left: otherLeft })}>
            Take all
          </Action>
          <Action kind="compact" isDisabled={taken.length === 0} onPress={() => onChange({ ...choice, left: [...otherLeft, ...tools.filter((from) => !isPattern(from))] })}>
            Take none
          </Action>
          <GuardedAction needs="operator" kind="compact" isDisabled={!isChanged || taken.length === 0 || doubles.length > 0} isPending={isPending} onPress={onCheck}>
            Check this choice
          </GuardedAction>
        </div>
      </div>
      <ItemChoice offer={offer} choice={choice} onChange={onChange} />
      {taken.length === 0 && <p className="note warn">Nothing is chosen: there would be nothing to publish.</p>}
      {checked && (
        <p className="note good" role="status">
          It can be published like this: {count(checked.tools.length, "tool")}, {checked.bytes.toLocaleString("en")} bytes in a list, about {count(checked.tokens, "token")}. The
          fingerprint to agree to is <Digest text={checked.fingerprint} />.
        </p>
      )}
    </section>
  );
}

/** Its prompts and templates, each with a tick and its text. */
function ItemChoice({ offer, choice, onChange }: { offer: UpstreamOffer; choice: ToolChoice; onChange: (choice: ToolChoice) => void }) {
  const row = ({ from, name, description }: UpstreamOffer["items"][number]) => (
    <li key={name} className="change">
      <label className="check">
        <input type="checkbox" checked={!choice.left.includes(from)} disabled={isPattern(from)} onChange={(event) => onChange(tickItem(choice, from, event.target.checked))} />
        <code>{from}</code>
      </label>
      <p className="small model-text">{description || <span className="soft">It has no description.</span>}</p>
    </li>
  );
  const prompts = offer.items.filter(({ kind }) => kind === "prompt");
  const templates = offer.items.filter(({ kind }) => kind === "template");
  return (
    <>
      {prompts.length > 0 && (
        <section className="stack tight" aria-label="Prompts">
          <h3>Prompts</h3>
          <ul className="stack tight">{prompts.map(row)}</ul>
        </section>
      )}
      {(templates.length > 0 || offer.resources > 0) && (
        <section className="stack tight" aria-label="Resources">
          <h3>Resources</h3>
          {offer.resources > 0 && (
            <p className="soft small">
              {count(offer.resources, "resource")} now. Agents are shown those that the server has at that moment; they are not part of what you agree to.
            </p>
          )}
          <ul className="stack tight">{templates.map(row)}</ul>
        </section>
      )}
    </>
  );
}

function ToolReach({ documents, name }: { documents: ContractDocument["tools"]; name: string }) {
  const document = documents.find((one) => one.name === name);
  return document ? <ReachBadge tool={document} /> : null;
}

function NameCell({ from, prefix, choice, doubles, onName }: { from: string; prefix: string; choice: ToolChoice; doubles: string[]; onName: (from: string, name: string) => void }) {
  const given = choice.names[from] ?? "";
  const fault = given !== "" && !isToolName(given) ? "only A-Z, a-z, 0-9, _ and -" : doubles.includes(given || from) ? "another tool has this name" : "";
  return (
    <>
      <div className="named">
        <code className="soft">{prefix}</code>
        <input
          aria-label={`Name of ${from}`}
          aria-invalid={fault !== "" || undefined}
          value={given}
          placeholder={from}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onName(from, event.target.value)}
        />
      </div>
      {fault && <div className="fault small">{fault}</div>}
    </>
  );
}
