// A record in words.
import type { Json, WrittenRecord } from "../../api/shapes";

export const textOf = (value: Json | undefined) => (typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value));

/** What was done: the act of an admin, or the kind. */
export const workOf = (record: WrittenRecord) => (typeof record.act === "string" ? record.act.replaceAll("_", " ") : record.kind);

/** To what. */
export function subjectOf(record: WrittenRecord): string {
  return textOf(record.tool ?? record.subject ?? record.path ?? record.chain ?? "");
}

/** The record as a sentence: `ada called list_orders (orders@2.0.0): refused, invalid_arguments`. */
export function recordSentence(record: WrittenRecord): string {
  const who = textOf(record.agent ?? record.by) || "someone";
  const subject = subjectOf(record);
  const contract = textOf(record.contract);
  const what = [subject, contract && `(${contract})`].filter(Boolean).join(" ");
  const end = [record.outcome, record.code, record.reason].map(textOf).filter(Boolean).join(", ");
  const ending = end && `: ${end}`;
  switch (record.kind) {
    case "call":
      return `${who} called ${what}${ending}`;
    case "intent":
      return `${who} is about to write with ${what}`;
    case "refused":
      return `A request ${who === "someone" ? "" : `of ${who} `}was turned away before it became a call: ${[record.what, record.reason].map(textOf).filter(Boolean).join(", ")}`;
    case "admin":
      return `${[workOf(record), what].filter(Boolean).join(" ")}, by ${who}`;
    default:
      return [workOf(record), what].filter(Boolean).join(" ");
  }
}
