// What the gateway finds wrong with arguments, by their places.
import type { ArgumentError, Json } from "../api/shapes";
import { faultText } from "./model";

export interface Fault {
  text: string;
  suggestion?: Json;
}

/** `text` has a line for each error, in the gateway's own words. */
export function faultsIn(errors: ArgumentError[], text: string): Map<string, Fault> {
  const lines = text.split("\n");
  const wordsAt = (path: string) => {
    const begins = [`${path || "/"}: `, `${JSON.stringify(path)}: `];
    return begins.flatMap((begin) => lines.filter((line) => line.startsWith(begin)).map((line) => line.slice(begin.length)))[0];
  };
  return new Map(errors.map((error) => [error.path, { text: wordsAt(error.path) ?? faultText(error), suggestion: suggestionOf(error) }]));
}

/** The suggestion for an unknown argument is a name, not a value. */
function suggestionOf(error: ArgumentError): Json | undefined {
  return error.reason === "unknown_argument" ? undefined : error.suggestion;
}
