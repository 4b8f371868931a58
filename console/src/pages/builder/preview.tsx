// What the text of the builder would become: the tools that an agent would see, and what the gate would say.
import type { PreviewedContract } from "../../api/queries";
import type { ContractDocument, DiffReport, Finding, ToolDocument } from "../../api/shapes";
import { FaultList, Loaded } from "../../parts/states";
import { ClassBadge, count } from "../../parts/words";
import { SchemaView } from "../../schema/view";
import { mayDo } from "../../session";
import { Callers, Difference, Findings } from "../contract/difference";
import { ReachBadge } from "../tools";

interface PreviewQuery {
  data: PreviewedContract | undefined;
  error: unknown;
  refetch: () => unknown;
}

export function Preview({ query, isBehind }: { query: PreviewQuery; isBehind: boolean }) {
  return (
    <section className="stack" aria-label="Preview" aria-busy={isBehind}>
      <h2>Preview</h2>
      {mayDo("editor") ? <Loaded query={query}>{(preview) => <Previewed preview={preview} />}</Loaded> : <p className="soft">A preview needs the role editor.</p>}
    </section>
  );
}

function Previewed({ preview }: { preview: PreviewedContract }) {
  const document = preview.document as ContractDocument | null;
  const report = preview.diff as DiffReport | null;
  return (
    <>
      {preview.problems.length > 0 && (
        <div className="note bad stack tight" role="status">
          <strong>{count(preview.problems.length, "problem")}</strong>
          <FaultList faults={preview.problems} />
        </div>
      )}
      {document && (
        <section className="stack tight" aria-label="An agent sees">
          <div className="row ends">
            <h3>An agent sees</h3>
            <span className="soft small">
              {preview.bytes.toLocaleString("en")} bytes, about {count(preview.tokens, "token")}
            </span>
          </div>
          {document.tools.map((tool) => (
            <PreviewedTool key={tool.name} tool={tool} />
          ))}
        </section>
      )}
      {preview.class && (
        <section className="stack tight" aria-label="The gate would say">
          <div className="row">
            <h3>The gate would say</h3>
            <ClassBadge name={preview.class} />
            <span>{preview.version}</span>
          </div>
          <p>{verdictOf(preview)}</p>
          {report && preview.class !== "identical" && preview.class !== "first" && <Difference report={report} />}
          {preview.impact && <Callers impact={preview.impact} />}
        </section>
      )}
      {document && (
        <section className="stack tight" aria-label="Lint">
          <h3>Lint</h3>
          {preview.lint.length > 0 ? <Findings findings={preview.lint as unknown as Finding[]} /> : <p className="soft">Lint finds nothing.</p>}
        </section>
      )}
    </>
  );
}

function verdictOf({ class: name, needs, problems }: PreviewedContract): string {
  if (problems.length > 0) return "Refused, for the problems above. This is the change otherwise:";
  if (needs) return `Held as a draft until an ${needs} publishes it.`;
  return name === "identical" ? "Nothing changes for agents." : "Live as soon as it is submitted.";
}

function PreviewedTool({ tool }: { tool: ToolDocument }) {
  return (
    <details>
      <summary>
        <code>{tool.name}</code> <ReachBadge tool={tool} />
      </summary>
      <div className="stack tight">
        {tool.description && <p>{tool.description}</p>}
        <SchemaView schema={tool.inputSchema} label="Arguments" />
        {tool.outputSchema && <SchemaView schema={tool.outputSchema} label="Result" />}
      </div>
    </details>
  );
}
