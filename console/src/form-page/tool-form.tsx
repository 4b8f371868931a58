// A tool as a form for people: what is filled in is sent to the page's own address, and the answer is shown below.
import { useEffect, useRef, useState } from "react";
import type { Json } from "../api/shapes";
import { Action } from "../parts/button";
import type { Fault } from "../schema/faults";
import { SchemaForm } from "../schema/form";
import { isRecord } from "../schema/exact";
import { RecordTable } from "../schema/records";
import { readAnswer, wordsOf, type FormAnswer } from "./answer";
import type { FormTool } from "./tool";

const NO_FAULTS = new Map<string, Fault>();

export function ToolForm({ tool }: { tool: FormTool }) {
  const form = useRef<HTMLFormElement>(null);
  const [value, setValue] = useState<Json>({});
  const [answer, setAnswer] = useState<FormAnswer | null>(null);
  const [asked, setAsked] = useState<Json>({});
  const [isPending, setPending] = useState(false);
  const send = async (body: Json) => {
    setPending(true);
    try {
      const response = await fetch(location.pathname, {
        method: "POST",
        headers: { "Content-Type": "application/json", Accept: "application/json" },
        body: JSON.stringify(body),
      });
      setAnswer(readAnswer(response.ok, await response.text()));
    } catch (error) {
      setAnswer({ kind: "refused", message: `The gateway did not answer: ${(error as Error).message}`, faults: NO_FAULTS });
    }
    setPending(false);
  };
  useEffect(() => {
    if (answer?.kind !== "refused") return;
    const first = form.current?.querySelector<HTMLElement>("[aria-invalid=true]") ?? document.getElementById("problem");
    first?.focus();
  }, [answer]);
  const faults = answer?.kind === "refused" ? answer.faults : NO_FAULTS;
  return (
    <>
      <form
        ref={form}
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (isPending) return;
          setAnswer(null);
          setAsked(value);
          void send(value);
        }}
      >
        {answer?.kind === "refused" && (
          <div className="note bad" id="problem" role="alert" tabIndex={-1}>
            {answer.message}
          </div>
        )}
        <SchemaForm schema={tool.inputSchema} value={value} onChange={setValue} context={{ root: tool.inputSchema, faults, isForPeople: true }} />
        <div>
          <Action type="submit" kind="main" isPending={isPending}>
            {tool.writes ? "Run" : "Ask"}
          </Action>
        </div>
      </form>
      <section className="stack" id="answer" aria-live="polite" aria-label="Answer" hidden={answer === null || answer.kind === "refused"}>
        <h2>Answer</h2>
        <div className="stack" id="result">
          {answer?.kind === "table" && (
            <>
              <p>{answer.table.rows.length === 1 ? "1 record" : `${answer.table.rows.length} records`}</p>
              {answer.facts.length > 0 && <Facts status="" facts={answer.facts} />}
              {answer.table.rows.length > 0 && <RecordTable label="Result" table={answer.table} />}
              {answer.next !== null && (
                <div>
                  <Action isPending={isPending} onPress={() => void send({ ...(isRecord(asked) ? asked : {}), cursor: answer.next })}>
                    Next page
                  </Action>
                </div>
              )}
            </>
          )}
          {answer?.kind === "facts" && <Facts status={answer.status} facts={answer.facts} />}
        </div>
      </section>
    </>
  );
}

function Facts({ status, facts }: { status: string; facts: [string, Json][] }) {
  return (
    <>
      {status && <p>{status}</p>}
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name} className="fact">
            <dt>{name}</dt>
            <dd>{wordsOf(value)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
