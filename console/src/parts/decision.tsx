// What policies decided of a call.
import { Link } from "wouter";
import type { PolicyDecision, PolicyView } from "../api/shapes";
import { decisionWords } from "../policy";
import { mayDo } from "../session";
import { Badge } from "./words";

interface DecisionProps {
  decision: PolicyDecision;
  /** The policies in force, for their messages. */
  policies?: PolicyView[];
}

export function DecisionNote({ decision, policies = [] }: DecisionProps) {
  const { word, tone, effect } = decisionWords(decision);
  return (
    <section className={`note ${tone} stack tight`} aria-label="Policy decision">
      <p>
        <strong>Policy:</strong> <Badge tone={tone}>{word}</Badge>
      </p>
      <p className="small">{effect}</p>
      {decision.policies.length > 0 && (
        <ul className="small">
          {decision.policies.map((id) => {
            const message = policies.find((policy) => policy.id === id)?.message;
            return (
              <li key={id}>
                <PolicyName id={id} />
                {message && <span>: {message}</span>}
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}

/** An auditor does not read the page of policies. */
function PolicyName({ id }: { id: string }) {
  return mayDo("viewer") ? (
    <Link href={`/settings?tab=policies&policy=${encodeURIComponent(id)}`}>
      <code>{id}</code>
    </Link>
  ) : (
    <code>{id}</code>
  );
}
