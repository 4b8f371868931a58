// Fields as the builder makes and changes them.
import type { FieldType, FormKey, FormView } from "../api/form";
import type { Json } from "../api/shapes";
import type { SourceColumn } from "../schema/columns";
import { isRecord } from "../schema/exact";
import type { Change, Place } from "./edit";
import type { PartKind } from "./place";

type Members = { [name: string]: Json };

/** The type of field that people usually want for a column. */
const USUAL: Record<string, string> = {
  string: "text", integer: "number", number: "number", decimal: "number", boolean: "checkbox", date: "date", datetime: "datetime", record: "record", list: "list", json: "json",
};

export const isBound = (field: Json | undefined) => isRecord(field) && ("from" in field || "value" in field);

/** A name for a field that a model's interface takes, made from a column's. */
export function fieldName(column: string): string {
  const plain = column.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "");
  return plain.slice(0, 64) || "field";
}

/** `name`, or `name_2`, …: a name that no other field has. */
export function freeName(name: string, fields: Json[]): string {
  const taken = new Set(fields.map((field) => (isRecord(field) ? field.name : "")));
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? name : `${name}_${number}`;
    if (!taken.has(candidate)) return candidate;
  }
}

/** What a key has to have from the start. */
function firstValue(key: FormKey): Json {
  switch (key.value) {
    case "part":
      return { type: "text" };
    case "part_list":
      return [];
    case "json_schema":
      return {};
    default:
      return "";
  }
}

function ownValues(type: FieldType | undefined): Members {
  const needed = (type?.keys ?? []).filter((key) => key.required);
  return Object.fromEntries(needed.map((key) => [key.name, firstValue(key)]));
}

export function typeNamed(form: FormView, name: Json | undefined): FieldType | undefined {
  return form.types.find((type) => type.name === name);
}

export function newField(form: FormView, type: string, fields: Json[], name = "field"): Members {
  return { name: freeName(name, fields), type, ...ownValues(typeNamed(form, type)) };
}

/** A field for a column: the argument has the column's name where possible. */
export function fieldOfColumn(form: FormView, column: SourceColumn, fields: Json[]): Members {
  const name = freeName(fieldName(column.name), fields);
  const type = USUAL[column.type] ?? "json";
  const elsewhere: Members = name === column.name ? {} : { column: column.name, title: column.name };
  return { name, type, ...ownValues(typeNamed(form, type)), ...elsewhere };
}

/** The columns without a field. */
export function freeColumns(columns: SourceColumn[], fields: Json[]): SourceColumn[] {
  const used = new Set(fields.flatMap((field) => (isRecord(field) && !("param" in field) ? [field.column ?? field.name] : [])));
  return columns.filter((column) => !used.has(column.name));
}

/** The types that may go to a column, and the others. */
export function agreeingTypes(form: FormView, column: SourceColumn | undefined): { agreeing: FieldType[]; others: FieldType[] } {
  const agrees = (type: FieldType) => column === undefined || type.columns.includes(column.type);
  return { agreeing: form.types.filter(agrees), others: form.types.filter((type) => !agrees(type)) };
}

/** Changes that give a field another type: keys that only the old type has are removed, and those the new one needs are added. */
export function changeType(form: FormView, at: Place, field: Members, type: string): Change[] {
  const own = (name: Json | undefined) => (typeNamed(form, name)?.keys ?? []).map((key) => key.name);
  const kept = own(type);
  const changes: Change[] = [{ kind: "set", at: [...at, "type"], value: type }];
  for (const key of own(field.type)) {
    if (key in field && !kept.includes(key)) changes.push({ kind: "remove", at: [...at, key] });
  }
  for (const [key, value] of Object.entries(ownValues(typeNamed(form, type)))) {
    if (!(key in field)) changes.push({ kind: "set", at: [...at, key], value });
  }
  return changes;
}

export type Filler = "sent" | "agent" | "tenant" | "value";

export function fillerOf(field: Members): Filler {
  if ("value" in field) return "value";
  return field.from === "agent" || field.from === "tenant" ? field.from : "sent";
}

/** Changes that let a field be filled by the caller's name or a constant, or by the agent again. */
export function changeFiller(form: FormView, at: Place, field: Members, filler: Filler): Change[] {
  const set = (key: string, value: Json): Change => ({ kind: "set", at: [...at, key], value });
  const drop = (keys: string[]): Change[] => keys.filter((key) => key in field).map((key) => ({ kind: "remove", at: [...at, key] }));
  if (filler === "sent") {
    const type = field.type ?? "text";
    const needed = Object.entries(ownValues(typeNamed(form, type))).filter(([key]) => !(key in field));
    return [set("type", type), ...needed.map(([key, value]) => set(key, value)), ...drop(["from", "value"])];
  }
  const bound = (form.parts.bound ?? []).map((key) => key.name);
  const source: Change = filler === "value" ? set("value", field.value ?? "") : set("from", filler);
  const foreign = Object.keys(field).filter((key) => !bound.includes(key));
  return [source, ...drop([...foreign, "type", filler === "value" ? "from" : "value"])];
}

/** The verbs of a tool that some keys are for; the others are for every verb. */
const VERBS_OF_KEY: Record<string, string[]> = {
  order: ["list"], group_by: ["summarize"], measures: ["summarize"], operation: ["call"], resource: ["lookup"], match: ["lookup", "list", "count", "summarize"], param: ["call", "lookup", "list"],
};

/** The keys of an inspector: those that most parts have, and the rest. */
export interface ShownKeys {
  first: FormKey[];
  more: FormKey[];
}

const FIRST: Record<PartKind, string[]> = {
  contract: ["contract", "title", "description"],
  collection: ["adapter", "settings", "write"],
  tool: ["tool", "description", "verb", "collection"],
  field: ["name", "type", "required", "help", "match", "from", "value"],
  member: ["name", "type", "required", "help"],
  element: ["type", "help"],
};

/** The keys that an inspector shows of a part. Those that a verb does not have are shown where they are set. */
export function keysOf(form: FormView, kind: PartKind, value: Members, verb: string | null): ShownKeys {
  const fits = (key: FormKey) => key.name in value || verb === null || (VERBS_OF_KEY[key.name]?.includes(verb) ?? true);
  const known = kind === "field" && isBound(value) ? (form.parts.bound ?? []).filter(({ name }) => name !== "from" && (name !== "value" || "value" in value)) : (form.parts[kind] ?? []);
  const keys = known.filter((key) => fits(key) && !LISTED.includes(`${kind} ${key.name}`));
  const order = FIRST[kind];
  const first = order.flatMap((name) => keys.filter((key) => key.name === name));
  const isOfField = kind === "field" || kind === "member" || kind === "element";
  const own = isOfField && !isBound(value) ? (typeNamed(form, value.type)?.keys ?? []) : [];
  return { first: [...first, ...own], more: keys.filter(({ name }) => !order.includes(name)) };
}

/** Keys whose values are lists of parts, which are chosen elsewhere. */
const LISTED = ["contract collections", "contract tools", "tool fields"];

/** A tool to begin with. */
export function newTool(verb: string, collection: string, tools: Json[]): Members {
  const thing = collection.replace(/[^A-Za-z0-9_-]/g, "_") || "records";
  const name = verb === "lookup" ? `find_${thing}` : `${verb}_${thing}`;
  const taken = tools.map((tool) => ({ name: isRecord(tool) ? (tool.tool ?? "") : "" }));
  return { tool: freeName(name.slice(0, 40), taken), description: "", verb, collection, fields: [] };
}

/** The name by which agents call a tool. */
export function publishedName(prefix: Json | undefined, tool: Json | undefined): string {
  const name = typeof tool === "string" ? tool : "";
  if (typeof prefix !== "string" || prefix === "") return name;
  return /[_-]$/.test(prefix) ? prefix + name : `${prefix}_${name}`;
}
