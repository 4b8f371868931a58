// What happens with the version that a breaking change replaces, as it is typed.
import type { KeepingView } from "../../api/shapes";

export interface KeepChoice {
  isKept: boolean;
  /** A day in UTC; empty: until an operator ends it. */
  lastDay: string;
  /** A shim as JSON; empty: the one that the difference suggests. */
  shim: string;
}

export const NOT_KEPT: KeepChoice = { isKept: false, lastDay: "", shim: "" };

interface TypedKeep {
  /** The members of a publication request. */
  body?: { keep?: boolean; sunset?: string; shim?: { [name: string]: unknown } };
  /** The fault of the shim. */
  fault?: string;
}

export function readKeep(choice: KeepChoice, keeping: KeepingView): TypedKeep {
  if (!choice.isKept) return { body: {} };
  const body = { keep: true, ...(choice.lastDay && { sunset: choice.lastDay }) };
  if (choice.shim.trim() === "") {
    const isEnough = keeping.shim != null || !keeping.needs_shim;
    return isEnough ? { body } : { fault: "a shim is needed, since the build of the live version answers" };
  }
  try {
    const shim: unknown = JSON.parse(choice.shim);
    const isObject = typeof shim === "object" && shim !== null && !Array.isArray(shim);
    return isObject ? { body: { ...body, shim: shim as { [name: string]: unknown } } } : { fault: "is a JSON object" };
  } catch (error) {
    return { fault: `is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
