// What a planned write changes, and where it stands, in the words of the page.
import type { PlanView } from "../api/shapes";
import type { Tone } from "../parts/words";

export interface ChangedColumn {
  column: string;
  before: string;
  after: string;
  isChanged: boolean;
}

const written = (value: unknown) => (value === undefined ? "" : JSON.stringify(value));

/** The part of a planned write that is a record; the document does not list the columns. */
export interface RecordChange {
  before?: object | null;
  after?: object | null;
  changed: string[];
}

const valueOf = (record: object | null | undefined, column: string) => (record as Record<string, unknown> | null | undefined)?.[column];

/** The columns of the record: first those that would change, each group in the record's order. */
export function changedRows({ before, after, changed }: RecordChange): ChangedColumn[] {
  const columns = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const changes = new Set(changed);
  const rows = columns.map((column) => ({
    column,
    before: written(valueOf(before, column)),
    after: written(valueOf(after, column)),
    isChanged: changes.has(column),
  }));
  return [...rows.filter(({ isChanged }) => isChanged), ...rows.filter(({ isChanged }) => !isChanged)];
}

const STATES: Record<PlanView["status"], { word: string; tone: Tone }> = {
  pending: { word: "waits", tone: "warn" },
  approved: { word: "approved, not run yet", tone: "accent" },
  rejected: { word: "rejected", tone: "bad" },
  applied: { word: "used", tone: "" },
  stale: { word: "the record changed", tone: "bad" },
};

export function planState({ status, is_expired }: Pick<PlanView, "status" | "is_expired">): { word: string; tone: Tone } {
  return is_expired ? { word: "expired", tone: "" } : STATES[status];
}
