// What a page shows while it waits, when it fails, and when there is nothing.
import type { ReactNode } from "react";
import { asProblem, plainTitle, type Fault } from "../api/problem";
import { Action } from "./action";

export function Skeleton({ lines = 5 }: { lines?: number }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} style={{ width: `${[92, 74, 83, 61, 88][line % 5]}%` }} />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function FaultList({ faults }: { faults: Fault[] }) {
  return (
    <ul className="stack tight">
      {faults.map((fault, index) => (
        <li key={index}>
          <div>
            {fault.message}
            {(fault.place || fault.line) && (
              <>
                {" "}
                <code className="soft">
                  {fault.line ? `line ${fault.line}` : ""} {fault.place}
                </code>
              </>
            )}
          </div>
          {fault.hint && <div className="soft small">{fault.hint}</div>}
        </li>
      ))}
    </ul>
  );
}

/** A refusal, in the gateway's words, with what can be done. */
export function ProblemNote({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = asProblem(error);
  return (
    <div className="note bad stack tight" role="alert">
      <strong>
        {plainTitle(problem)}
      </strong>
      {problem.detail && <p>{problem.detail}</p>}
      {problem.problems.length > 0 && <FaultList faults={problem.problems} />}
      {retry && (
        <div>
          <Action kind="compact" onPress={retry}>
            Try again
          </Action>
        </div>
      )}
    </div>
  );
}

interface Loading<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** Shows what was loaded. A failed reload keeps what is shown and marks it as outdated. */
export function Loaded<T>({ query, children, lines }: { query: Loading<T>; children: (data: T) => ReactNode; lines?: number }) {
  const retry = () => void query.refetch();
  if (query.data === undefined) {
    return query.error ? <ProblemNote error={query.error} retry={retry} /> : <Skeleton lines={lines} />;
  }
  return (
    <>
      {query.error != null && <ProblemNote error={query.error} retry={retry} />}
      {children(query.data)}
    </>
  );
}
