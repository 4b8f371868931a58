// The gate's report on the text, compared with what is served.
import type { PreviewedContract } from "../api/queries";
import type { DiffReport, Finding } from "../api/shapes";
import { FaultList, Loaded } from "../parts/states";
import { ClassBadge, count } from "../parts/words";
import { mayDo } from "../session";
import { Callers, Difference, Findings } from "../pages/contract/difference";
import { TextLines } from "../pages/contract/text-lines";

interface PreviewQuery {
  data: PreviewedContract | undefined;
  error: unknown;
  refetch: () => unknown;
}

interface ComparedProps {
  query: PreviewQuery;
  isBehind: boolean;
  /** The served text, empty if nothing is served, and the builder's text. */
  served: string;
  text: string;
}

export function Compared({ query, isBehind, served, text }: ComparedProps) {
  return (
    <section className="stack" aria-label="Compared with what is served" aria-busy={isBehind}>
      {mayDo("editor") ? <Loaded query={query}>{(preview) => <Previewed preview={preview} />}</Loaded> : <p className="soft">A preview needs the role editor.</p>}
      {served !== "" && served !== text && (
        <section className="stack tight">
          <h3>The text</h3>
          <TextLines before={served} after={text} label="Text that is served, and this one" />
        </section>
      )}
    </section>
  );
}

function Previewed({ preview }: { preview: PreviewedContract }) {
  const { document } = preview;
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
        <p className="soft">
          A list of all tools has {preview.bytes.toLocaleString("en")} bytes, about {count(preview.tokens, "token")}.
        </p>
      )}
      {preview.class && (
        <section className="stack tight" aria-label="The gate's report">
          <div className="row">
            <h3>The gate's report</h3>
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
