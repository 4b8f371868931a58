// What a trial call shows, worked out apart from the page.
import type { CallError, Json, Tried } from "../api/shapes";
import { isRecord, parseExact } from "../schema/exact";
import { faultsIn, type Fault } from "../schema/faults";
import { findRecords, tableOf, type ResultTable } from "../schema/records";

/** The faults by the place of the argument, in the words of the result's text. */
export const faultsOf = (tried: Tried): Map<string, Fault> => faultsIn(callError(tried)?.errors ?? [], tried.text);

export function callError(tried: Tried): CallError | null {
  const content = tried.structured_content as unknown as CallError | null;
  return tried.is_error && content !== null && typeof content === "object" && "code" in content ? content : null;
}

/** The records of a result: the list of objects in it, or the one object. */
export function resultTable(content: Json): ResultTable | null {
  const records = findRecords(content);
  return records && tableOf(records);
}

/** What a list returns for its next page; null on the last one, and for tools without pages. */
export function nextCursor(tried: Tried): string | null {
  const content = tried.structured_content as unknown as Json;
  return isRecord(content) && Array.isArray(content.records) && typeof content.next === "string" ? content.next : null;
}

/** The outcome of a trial from its text. */
export const readTried = (text: string) => parseExact(text) as unknown as Tried;

/** The body of a trial. Raw arguments are sent as they were typed, so that no number loses a digit. */
export function trialBody(tool: string, agent: string, isDry: boolean, rawArguments: string): string {
  const head = JSON.stringify({ tool, ...(agent && { agent }), dry_run: isDry });
  return `${head.slice(0, -1)},"arguments":${rawArguments}}`;
}
