// The values that rows have in a column, as choices of a field over it.
import type { Json } from "../api/shapes";
import { isRecord } from "../schema/exact";
import { valueAt, type Place } from "./edit";

interface ColumnPlace {
  connection: string;
  source: string;
  column: string;
}

/** Returns the column behind the key of a tool's field; null if there is none that can be read. */
export function columnAt(root: Json | undefined, at: Place): ColumnPlace | null {
  const field = valueAt(root, at.slice(0, -1));
  const toolAt = at.slice(0, at.indexOf("fields"));
  const tool = valueAt(root, toolAt);
  if (!isRecord(field) || !isRecord(tool) || at.length !== toolAt.length + 3) return null;
  const entry = typeof tool.collection === "string" ? valueAt(root, ["collections", tool.collection]) : undefined;
  const settings = isRecord(entry) && isRecord(entry.settings) ? entry.settings : {};
  const source = settings.path ?? settings.table;
  const column = field.column ?? field.name;
  if (typeof settings.connection !== "string" || typeof source !== "string" || typeof column !== "string" || "param" in field) return null;
  return { connection: settings.connection, source, column };
}

/** Returns each value once, in the order of the rows. */
export function distinctValues(rows: { [column: string]: Json }[], column: string): string[] {
  const values = rows.map((row) => row[column]).filter((value) => value !== undefined && value !== null && value !== "");
  return [...new Set(values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))))];
}
