// What the text becomes: the tool that an agent sees, the form that people see, the text, and the gate's report.
import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import { useFormSchema } from "../api/form";
import type { Fault } from "../api/problem";
import type { PreviewedContract } from "../api/queries";
import type { ContractDocument, Json, ToolDocument } from "../api/shapes";
import { useAddressValue } from "../location";
import { Loaded, Skeleton } from "../parts/states";
import { Badge, CopyAction, count, pretty } from "../parts/words";
import { isRecord } from "../schema/exact";
import { SchemaForm } from "../schema/form";
import { schemaLines } from "../schema/lines";
import { pointerPart } from "../schema/model";
import { SchemaView } from "../schema/view";
import { mayDo } from "../session";
import { useBuilder } from "./context";
import { valueAt } from "./edit";
import { publishedName } from "./field-model";
import { pointerOf, toolOf, toolPlaces } from "./place";

const Editor = lazy(() => import("../parts/editor"));

interface PreviewQuery {
  data: PreviewedContract | undefined;
  error: unknown;
  refetch: () => unknown;
}

interface LiveProps {
  query: PreviewQuery;
  isBehind: boolean;
  text: string;
  onText: (text: string) => void;
  compared: ReactNode;
}

export function LivePane({ query, isBehind, text, onText, compared }: LiveProps) {
  const [pane, setPane] = useAddressValue("pane");
  const panes = ["agent", "people", "yaml", "compared"];
  const shown = panes.includes(pane) ? pane : "agent";
  const { faults: problems } = useBuilder();
  return (
    <section className="live" aria-label="What it becomes" aria-busy={isBehind}>
      <Tabs selectedKey={shown} onSelectionChange={(key) => setPane(key === "agent" ? "" : String(key))} keyboardActivation="manual">
        <TabList aria-label="What it becomes" className="tabs">
          <Tab id="agent">Agent</Tab>
          <Tab id="people">Form</Tab>
          <Tab id="yaml">
            YAML {problems.length > 0 && <Badge tone="bad">{count(problems.length, "problem")}</Badge>}
          </Tab>
          <Tab id="compared">Changes</Tab>
        </TabList>
        <TabPanel id="agent">
          <Previewed query={query}>{(preview) => <AgentSees preview={preview} />}</Previewed>
        </TabPanel>
        <TabPanel id="people">
          <Previewed query={query}>{(preview) => <HumanForm preview={preview} />}</Previewed>
        </TabPanel>
        <TabPanel id="yaml">
          <TextPane text={text} onText={onText} faults={problems} />
        </TabPanel>
        <TabPanel id="compared">{compared}</TabPanel>
      </Tabs>
    </section>
  );
}

function Previewed({ query, children }: { query: PreviewQuery; children: (preview: PreviewedContract) => ReactNode }) {
  return mayDo("editor") ? <Loaded query={query}>{children}</Loaded> : <p className="soft">A preview needs the role editor.</p>;
}

/** The selected tool of the preview, or the first one. */
function useSelectedTool(preview: PreviewedContract): ToolDocument | undefined {
  const { root, part } = useBuilder();
  const tools = (preview.document as ContractDocument | null)?.tools ?? [];
  const at = toolOf(part, root);
  const entry = at ? valueAt(root, at) : undefined;
  if (!isRecord(entry)) return tools[0];
  const name = publishedName(isRecord(root) ? root.prefix : undefined, entry.tool);
  return tools.find((tool) => tool.name === name);
}

function NoTool({ preview }: { preview: PreviewedContract }) {
  const { root } = useBuilder();
  return (
    <p className="soft">
      {preview.problems.length > 0 && toolPlaces(root).length > 0 ? `${count(preview.problems.length, "problem")} to mend first. Each is at its part.` : "Add a tool to see what agents get."}
    </p>
  );
}

function AgentSees({ preview }: { preview: PreviewedContract }) {
  const tool = useSelectedTool(preview);
  const pointer = useSchemaPointer();
  const marked = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (marked.current) showWithin(marked.current);
  }, [pointer]);
  if (!tool) return <NoTool preview={preview} />;
  const lines = schemaLines(tool.inputSchema);
  const first = lines.findIndex((line) => isMarked(line.pointer, pointer));
  return (
    <div className="stack">
      <div className="row ends">
        <h3 className="mono">{tool.name}</h3>
        <span className="row">
          <span className="soft small">
            all tools: {preview.bytes.toLocaleString("en")} bytes, about {count(preview.tokens, "token")}
          </span>
          <CopyAction text={pretty(tool.inputSchema)} label="Copy the schema" />
        </span>
      </div>
      {tool.description && <p>{tool.description}</p>}
      <div className="code">
        <pre tabIndex={0} role="group" aria-label="Schema of the arguments">
          {lines.map((line, index) => (
            <span key={index} ref={index === first ? marked : undefined} className={`json-line ${isMarked(line.pointer, pointer) ? "marked" : ""}`}>
              {line.text}
            </span>
          ))}
        </pre>
      </div>
      {tool.outputSchema && <SchemaView schema={tool.outputSchema} label="Result" />}
    </div>
  );
}

/** Scrolls the pane with its own scroll bar, never the page. */
function showWithin(element: HTMLElement) {
  const pane = element.closest<HTMLElement>(".live");
  if (!pane || getComputedStyle(pane).overflowY === "visible") return;
  const [inner, outer] = [element.getBoundingClientRect(), pane.getBoundingClientRect()];
  if (inner.top < outer.top + 48 || inner.bottom > outer.bottom) pane.scrollTop += inner.top - outer.top - outer.height / 3;
}

const isMarked = (line: string, pointer: string | null) => pointer !== null && (line === pointer || line.startsWith(`${pointer}/`));

/** The place of the selected field in the schema: a member of a record is a property in it, the item of a list its `items`. */
function useSchemaPointer(): string | null {
  const { root, part } = useBuilder();
  const tool = toolOf(part, root);
  if (!tool || part.at.length === tool.length) return null;
  let pointer = "";
  for (let length = tool.length + 1; length <= part.at.length; length += 1) {
    const step = part.at[length - 1];
    const field = valueAt(root, part.at.slice(0, length));
    if (step === "of") pointer += "/items";
    else if (typeof step === "number") pointer += `/properties${pointerPart(isRecord(field) ? String(field.name ?? "") : "")}`;
  }
  return pointer;
}

/** The form that a person would fill in. Nothing of it is sent. */
function HumanForm({ preview }: { preview: PreviewedContract }) {
  const tool = useSelectedTool(preview);
  const [value, setValue] = useState<Json>({});
  if (!tool) return <NoTool preview={preview} />;
  return (
    <div className="stack">
      <h3>{tool.title ?? tool.name}</h3>
      <SchemaForm schema={tool.inputSchema} value={value} onChange={setValue} context={{ root: tool.inputSchema, faults: new Map(), isForPeople: true }} />
      <p className="soft small">This is a look at the form. Try it when the tool is published.</p>
    </div>
  );
}

function TextPane({ text, onText, faults }: { text: string; onText: (text: string) => void; faults: Fault[] }) {
  const { part, selectPointer } = useBuilder();
  const schema = useFormSchema();
  return (
    <div className="stack tight">
      <p className="soft small">Keys and words are offered as you type, and by Ctrl + Space or Alt + Enter; ↑ and ↓ choose, Enter takes, Esc closes.</p>
      <Suspense fallback={<Skeleton lines={12} />}>
        <Editor text={text} onChange={onText} faults={faults} label="Contract as YAML" place={pointerOf(part.at)} hasHistory={false} schema={schema.data} />
      </Suspense>
      {faults.length > 0 && (
        <ul className="stack tight">
          {faults.map((fault, index) => (
            <li key={index}>
              <button type="button" className="fault-link" onClick={() => selectPointer(fault.place)}>
                {fault.line ? `Line ${fault.line}: ` : ""}
                {fault.message}
              </button>
              {fault.hint && <div className="soft small">{fault.hint}</div>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
