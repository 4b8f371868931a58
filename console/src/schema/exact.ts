// JSON whose integers keep their digits: a number of JavaScript has 53 bits, an id of a source may have 64.
import type { Json } from "../api/shapes";

/** What browsers have and the types of TypeScript do not have yet. */
const { rawJSON, isRawJSON } = JSON as { rawJSON?: (text: string) => unknown; isRawJSON?: (value: unknown) => boolean };

/** An integer that a number cannot hold is a value that `JSON.stringify` writes digit by digit. A browser without such values rounds it. */
export function exactInteger(text: string): Json {
  const number = Number(text);
  return Number.isSafeInteger(number) || !rawJSON || !/^-?\d+$/.test(text) ? number : (rawJSON(text) as Json);
}

export const isNumber = (value: Json | undefined): boolean => typeof value === "number" || isRawJSON?.(value) === true;

export const isRecord = (value: Json | undefined): value is { [name: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isNumber(value);

/** Reads JSON. Throws a `SyntaxError` if it is not JSON. */
export function parseExact(text: string): Json {
  const revive = (_: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined ? exactInteger(context.source) : value;
  return JSON.parse(text, revive);
}
