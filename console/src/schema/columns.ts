// The columns of a source, as the results of its tools have them.
import type { Json, JsonSchema } from "../api/shapes";

export interface SourceColumn {
  name: string;
  /** A type of columns, such as `string` or `decimal`. */
  type: string;
  isNullable: boolean;
}

/** Reads the columns from the schema of a list's result. */
export function columnsOf(schema: JsonSchema): SourceColumn[] {
  const list = (schema.properties as JsonSchema | undefined)?.records as JsonSchema | undefined;
  const record = (list?.items as JsonSchema | undefined)?.properties as JsonSchema | undefined;
  return Object.entries(record ?? {}).map(([name, column]) => {
    const { types, format, pattern } = typesOfColumn(column as JsonSchema);
    const named = types.filter((type) => type !== "null");
    return { name, type: columnType(named, format, pattern), isNullable: named.length < types.length };
  });
}

function typesOfColumn(schema: JsonSchema): { types: string[]; format: Json | undefined; pattern: Json | undefined } {
  const arms = Array.isArray(schema.anyOf) ? (schema.anyOf as JsonSchema[]) : [schema];
  const typed = arms.find((arm) => arm.type !== "null") ?? {};
  return { types: arms.flatMap((arm) => arm.type ?? []).map(String), format: typed.format, pattern: typed.pattern };
}

function columnType([type, ...others]: string[], format: Json | undefined, pattern: Json | undefined): string {
  if (type === undefined || others.length > 0) return "json";
  if (type === "object") return "record";
  if (type === "array") return "list";
  if (type !== "string") return type;
  if (format === "date") return "date";
  if (format === "date-time") return "datetime";
  return typeof pattern === "string" ? "decimal" : "string";
}
