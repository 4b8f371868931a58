// What a planned write changes, and where it stands, in the words of the page.
import type { PlannedWrite, PlanView } from "../api/shapes";
import type { Tone } from "../parts/words";

export interface ChangedColumn {
  column: string;
  before: string;
  after: string;
  isChanged: boolean;
}

const written = (value: unknown) => (value === undefined ? "" : JSON.stringify(value));

/** The columns of the record: those that would change first, each group in the record's order. */
export function changedRows({ before, after, changed }: Pick<PlannedWrite, "before" | "after" | "changed">): ChangedColumn[] {
  const columns = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const changes = new Set(changed);
  const rows = columns.map((column) => ({
    column,
    before: written((before as Record<string, unknown> | null | undefined)?.[column]),
    after: written((after as Record<string, unknown> | null | undefined)?.[column]),
    isChanged: changes.has(column),
  }));
  return [...rows.filter(({ isChanged }) => isChanged), ...rows.filter(({ isChanged }) => !isChanged)];
}

const STATES: Record<PlanView["status"], { word: string; tone: Tone }> = {
  pending: { word: "waits", tone: "warn" },
  approved: { word: "approved, not run yet", tone: "accent" },
  rejected: { word: "rejected", tone: "bad" },
  applied: { word: "written", tone: "good" },
  stale: { word: "the record changed", tone: "bad" },
};

export function planState({ status, is_expired }: Pick<PlanView, "status" | "is_expired">): { word: string; tone: Tone } {
  return is_expired ? { word: "expired", tone: "" } : STATES[status];
}
