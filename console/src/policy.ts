// What policies decided of a call.
import type { Json, PolicyDecision, Tried } from "./api/shapes";
import { isRecord } from "./schema/exact";
import type { Tone } from "./parts/words";

/** The decision in a record of the trail; null where there is none. */
export function recordedDecision(value: Json | undefined): PolicyDecision | null {
  if (!isRecord(value)) return null;
  const { decision, policies } = value;
  if (decision !== "denied" && decision !== "audited") return null;
  return { decision, policies: Array.isArray(policies) ? policies.map(String) : [] };
}

interface DecisionWords {
  word: string;
  tone: Tone;
  /** What that means for the call. */
  effect: string;
}

export function decisionWords({ decision, policies }: PolicyDecision): DecisionWords {
  const why = policies.length === 0 ? "No policy permits this call" : `${policies.length === 1 ? "This policy denies" : "These policies deny"} it`;
  return decision === "denied"
    ? { word: "denied", tone: "bad", effect: `${why}: it was refused, and nothing was done.` }
    : { word: "would be denied", tone: "warn", effect: `${why}: it went on, since policies are in audit mode.` };
}

/** Whether a result shows that policies let the call pass: what fails earlier reaches no policy. */
export const passedPolicies = (tried: Pick<Tried, "is_error" | "policy">, inForce: number) => inForce > 0 && !tried.is_error && tried.policy == null;
