// What the gateway answers to a form that was sent.
import type { ArgumentError, Json } from "../api/shapes";
import { isRecord, parseExact } from "../schema/exact";
import { faultsIn, type Fault } from "../schema/faults";
import { findRecords, tableOf, type ResultTable } from "../schema/records";

export type FormAnswer =
  | { kind: "table"; table: ResultTable; next: string | null; facts: [string, Json][] }
  | { kind: "facts"; status: string; facts: [string, Json][] }
  | { kind: "refused"; message: string; faults: Map<string, Fault> };

export function readAnswer(isOk: boolean, text: string): FormAnswer {
  const found = parseExact(text);
  if (!isOk) return readRefusal(isRecord(found) ? found : {});
  if (!isRecord(found)) return { kind: "facts", status: "", facts: [["result", found]] };
  const next = typeof found.next === "string" ? found.next : null;
  if (Array.isArray(found.records)) {
    // What could not be compared, whether there is more, and how many there are in total.
    const facts = Object.entries(found).filter(([name]) => name !== "records" && name !== "next");
    return { kind: "table", table: tableOf(findRecords(found) ?? []), next, facts };
  }
  const status = typeof found.status === "string" ? found.status : "";
  return { kind: "facts", status, facts: Object.entries(isRecord(found.record) ? found.record : found) };
}

function readRefusal(problem: { [name: string]: Json }): FormAnswer {
  const detail = typeof problem.detail === "string" ? problem.detail : "The gateway refused it.";
  const errors = Array.isArray(problem.errors) ? (problem.errors as unknown as ArgumentError[]) : [];
  return { kind: "refused", message: errors.length > 0 ? "Some values are missing or not allowed." : detail, faults: faultsIn(errors, detail) };
}

/** The text of a value in a cell of its own. */
export function wordsOf(value: Json): string {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "Yes" : "No";
  return typeof value === "string" ? value : JSON.stringify(value);
}
