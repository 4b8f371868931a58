// Faults by their files.
import type { Fault } from "../../api/problem";

/** Returns the files in the order of their first faults, each with its own. */
export function byFile(faults: Fault[]): [string, Fault[]][] {
  const files = new Map<string, Fault[]>();
  for (const fault of faults) files.set(fault.file, [...(files.get(fault.file) ?? []), fault]);
  return [...files];
}
