// What a JSON Schema asks of a value, as far as a form and a reader need it. The gateway validates; nothing here does.
import type { ArgumentError, Json, JsonSchema } from "../api/shapes";
import { exactInteger, isNumber, isRecord } from "./exact";

export type FieldKind = "text" | "long" | "file" | "number" | "date" | "date-time" | "boolean" | "choice" | "list" | "record" | "map" | "union" | "any";

export interface FieldModel {
  kind: FieldKind;
  schema: JsonSchema;
  /** Whether the value may be null. */
  isNullable: boolean;
  /** The values of a choice. */
  choices: Json[];
  /** The alternatives of a union. */
  arms: JsonSchema[];
}

/** References are followed this deep: a schema may refer to itself. */
const REFERENCE_DEPTH_MAX = 8;
/** A text that may be longer gets an area. */
const LINE_MAX = 200;

const isSchema = (value: Json | undefined): value is JsonSchema => typeof value === "object" && value !== null && !Array.isArray(value);
export const schemasIn = (value: Json | undefined): JsonSchema[] => (Array.isArray(value) ? value.filter(isSchema) : []);

/** Follows references inside the document, and merges the keywords next to them. */
export function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let found = schema;
  for (let depth = 0; depth < REFERENCE_DEPTH_MAX; depth += 1) {
    const reference = found.$ref;
    if (typeof reference === "string" && reference.startsWith("#")) {
      const target = pointed(root, reference.slice(1));
      if (!isSchema(target)) return found;
      const { $ref: _, ...beside } = found;
      found = { ...target, ...beside };
      continue;
    }
    const parts = schemasIn(found.allOf);
    if (parts.length === 0) return found;
    const { allOf: _, ...beside } = found;
    found = parts.reduce<JsonSchema>((all, part) => merge(all, resolve(part, root)), beside);
  }
  return found;
}

function merge(one: JsonSchema, other: JsonSchema): JsonSchema {
  const properties = { ...(one.properties as JsonSchema), ...(other.properties as JsonSchema) };
  const required = [...new Set([...((one.required as Json[]) ?? []), ...((other.required as Json[]) ?? [])])];
  return {
    ...other,
    ...one,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  };
}

/** Returns the value that a JSON Pointer names. */
export function pointed(value: Json | undefined, pointer: string): Json | undefined {
  let found = value;
  for (const part of pointer.split("/").slice(1)) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof found !== "object" || found === null) return undefined;
    found = Array.isArray(found) ? found[Number(name)] : found[name];
  }
  return found;
}

export const pointerPart = (name: string | number) => `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

export function typesOf(schema: JsonSchema): string[] {
  if (typeof schema.type === "string") return [schema.type];
  if (Array.isArray(schema.type)) return schema.type.map(String);
  if (schema.properties || schema.required) return ["object"];
  if (schema.items || schema.prefixItems) return ["array"];
  return [];
}

const isNullOnly = (schema: JsonSchema) => schema.type === "null" || schema.const === null || (Array.isArray(schema.enum) && schema.enum.length === 1 && schema.enum[0] === null);

/** Determines the field for a schema. */
export function fieldModel(given: JsonSchema, root: JsonSchema): FieldModel {
  const schema = resolve(given, root);
  const arms = schemasIn(schema.anyOf ?? schema.oneOf).map((arm) => resolve(arm, root));
  // An object with alternatives that only add required members is that object.
  if (arms.length > 0 && !schema.properties) return unionModel(schema, arms, root);
  const types = typesOf(schema);
  const isNullable = types.includes("null");
  const model = (kind: FieldKind, more: Partial<FieldModel> = {}): FieldModel => ({ kind, schema, isNullable, choices: [], arms: [], ...more });
  if (Array.isArray(schema.enum)) {
    const choices = schema.enum.filter((choice) => choice !== null);
    return model("choice", { choices, isNullable: isNullable || choices.length < schema.enum.length });
  }
  if (schema.const !== undefined) return model("choice", { choices: [schema.const] });
  const named = types.filter((type) => type !== "null");
  if (named.length > 1) return model("union", { arms: named.map((type) => ({ ...schema, type })) });
  return model(kindOfType(named[0], schema));
}

function unionModel(schema: JsonSchema, arms: JsonSchema[], root: JsonSchema): FieldModel {
  const others = arms.filter((arm) => !isNullOnly(arm));
  const isNullable = others.length < arms.length;
  const [only] = others;
  const { anyOf: _, oneOf: __, ...beside } = schema;
  if (others.length === 1 && only) {
    const inner = fieldModel({ ...only, ...beside }, root);
    return { ...inner, isNullable: inner.isNullable || isNullable };
  }
  const constants = others.map((arm) => (Array.isArray(arm.enum) ? arm.enum : arm.const === undefined ? null : [arm.const]));
  if (constants.every((values) => values !== null)) {
    return { kind: "choice", schema, isNullable, choices: constants.flat() as Json[], arms: [] };
  }
  return { kind: "union", schema, isNullable, choices: [], arms: others };
}

function kindOfType(type: string | undefined, schema: JsonSchema): FieldKind {
  switch (type) {
    case "string": {
      if (schema.contentEncoding === "base64") return "file";
      if (schema.format === "date") return "date";
      if (schema.format === "date-time") return "date-time";
      return typeof schema.maxLength === "number" && schema.maxLength > LINE_MAX ? "long" : "text";
    }
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return isSchema(schema.items) ? "list" : "any";
    case "object":
      if (isSchema(schema.properties)) return "record";
      return isSchema(schema.additionalProperties) ? "map" : "any";
    default:
      return "any";
  }
}

export function propertiesOf(schema: JsonSchema): [string, JsonSchema][] {
  return isSchema(schema.properties)
    ? Object.entries(schema.properties).filter((entry): entry is [string, JsonSchema] => isSchema(entry[1]))
    : [];
}

export const requiredOf = (schema: JsonSchema): string[] => (Array.isArray(schema.required) ? schema.required.map(String) : []);

/** What is typed becomes a number where that loses nothing. Anything else is kept as text, and the gateway reports what is wrong. */
export function typedNumber(text: string): Json | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) return trimmed;
  const number = exactInteger(trimmed);
  // A browser rounded it, or it has an exponent too large to be read.
  if (typeof number === "number" && (!Number.isFinite(number) || (Number.isInteger(number) && !Number.isSafeInteger(number)))) return trimmed;
  return number;
}

/** A field that was just added. */
export function emptyValue(model: FieldModel): Json {
  switch (model.kind) {
    case "record":
    case "map":
      return {};
    case "list":
      return [];
    case "boolean":
      return false;
    case "choice":
      return model.choices[0] ?? null;
    case "any":
      return null;
    default:
      return "";
  }
}

/** Sets or removes a member. */
export function withMember(record: { [name: string]: Json }, name: string, value: Json | undefined): { [name: string]: Json } {
  if (value !== undefined) return { ...record, [name]: value };
  const { [name]: _, ...others } = record;
  return others;
}

/** Below this, JSON is written by hand: a schema may refer to itself. */
export const DEPTH_MAX = 16;

export const depthOf = (path: string) => path.split("/").length - 1;

/** The places of the fields that a form shows for a value: those in a record or a list exist while it does. */
export function shownPaths(given: JsonSchema, root: JsonSchema, value: Json | undefined, path = "", isRequired = true): string[] {
  const model = fieldModel(given, root);
  const paths = path === "" ? [] : [path];
  if (depthOf(path) > DEPTH_MAX) return paths;
  if (value === null && model.isNullable) return paths;
  if (model.kind === "record" && (isRequired || value !== undefined)) {
    const record = isRecord(value) ? value : {};
    const required = requiredOf(model.schema);
    return [...paths, ...propertiesOf(model.schema).flatMap(([name, schema]) => shownPaths(schema, root, record[name], path + pointerPart(name), required.includes(name)))];
  }
  if (model.kind === "list" && Array.isArray(value) && !isChoiceList(model, root)) {
    return [...paths, ...value.flatMap((item, at) => shownPaths((model.schema.items as JsonSchema) ?? {}, root, item, path + pointerPart(at)))];
  }
  if (model.kind === "map" && isRecord(value)) {
    return [...paths, ...Object.entries(value).flatMap(([name, item]) => shownPaths((model.schema.additionalProperties as JsonSchema) ?? {}, root, item, path + pointerPart(name)))];
  }
  const arm = model.kind === "union" ? model.arms[armOf(value, model.arms)] : undefined;
  return arm ? [...paths, ...shownPaths(arm, root, value, path)] : paths;
}

/** Whether a list holds some of a few values, each once: these are checkboxes. */
export function isChoiceList(model: FieldModel, root: JsonSchema): boolean {
  if (model.kind !== "list" || model.schema.uniqueItems !== true) return false;
  const { kind, choices } = fieldModel((model.schema.items as JsonSchema) ?? {}, root);
  return kind === "choice" && choices.length <= BOXES_MAX;
}

/** More values than this are added one by one. */
const BOXES_MAX = 20;

/** The alternative that a value belongs to, by its type; -1 if it belongs to none. */
export function armOf(value: Json | undefined, arms: JsonSchema[]): number {
  if (value === undefined) return -1;
  const type = value === null ? "null" : Array.isArray(value) ? "array" : isNumber(value) ? "number" : typeof value;
  const fits = (schema: JsonSchema) => {
    const named = typesOf(schema)[0];
    return named === type || (type === "number" && named === "integer");
  };
  return arms.findIndex(fits);
}

const REASONS: Record<string, string> = {
  missing_required: "is required",
  unknown_argument: "is not an argument of this tool",
  not_in_enum: "is not one of the values",
  out_of_range: "is out of range",
  wrong_type: "has another type",
};

export function faultText(error: ArgumentError): string {
  const bounds = error.constraint === undefined ? "" : ` (${constraintText(error.constraint)})`;
  return `${REASONS[error.reason] ?? error.reason.replaceAll("_", " ")}${bounds}`;
}

function constraintText(constraint: Json): string {
  if (typeof constraint !== "object" || constraint === null || Array.isArray(constraint)) return JSON.stringify(constraint);
  return Object.entries(constraint)
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.map((entry) => JSON.stringify(entry)).join(", ") : JSON.stringify(value)}`)
    .join("; ");
}

/** The type of a property, in a few words: `integer, 1 to 5`. */
export function typeText(given: JsonSchema, root: JsonSchema): string {
  const model = fieldModel(given, root);
  const { schema } = model;
  const words: string[] = [];
  if (model.kind === "choice") words.push(`one of ${model.choices.map((choice) => JSON.stringify(choice)).join(", ")}`);
  else if (model.kind === "union") words.push(model.arms.map((arm) => typesOf(arm).join(" or ") || "any").join(" or "));
  else if (model.kind === "list") words.push(`list of ${typeText((schema.items as JsonSchema) ?? {}, root)}`);
  else words.push(typesOf(schema).filter((type) => type !== "null").join(" or ") || "any value");
  if (typeof schema.format === "string") words.push(schema.format);
  words.push(...rangeTexts(schema));
  if (model.isNullable) words.push("or null");
  return words.join(", ").replaceAll(", or null", " or null");
}

/** The bounds of a single field, for people. */
export function boundsText({ schema, kind }: FieldModel): string {
  return kind === "choice" || kind === "date" || kind === "union" ? "" : rangeTexts(schema).join(", ");
}

function rangeTexts(schema: JsonSchema): string[] {
  const range = (low: Json | undefined, high: Json | undefined, unit: string) => {
    const units = (bound: Json) => unit && (bound === 1 ? unit : `${unit}s`);
    if (low !== undefined && high !== undefined) return [`${low} to ${high}${units(high)}`];
    if (low !== undefined) return [`at least ${low}${units(low)}`];
    return high === undefined ? [] : [`at most ${high}${units(high)}`];
  };
  return [
    ...range(schema.minimum, schema.maximum, ""),
    ...(schema.exclusiveMinimum === undefined ? [] : [`above ${schema.exclusiveMinimum}`]),
    ...(schema.exclusiveMaximum === undefined ? [] : [`below ${schema.exclusiveMaximum}`]),
    ...range(schema.minLength, schema.maxLength, " character"),
    ...range(schema.minItems, schema.maxItems, " item"),
    ...(typeof schema.pattern === "string" ? [`matches ${schema.pattern}`] : []),
  ];
}

/** The example of a schema, for a field that is still empty. */
export function placeholderOf(schema: JsonSchema): string {
  if (schema.default !== undefined) return `${typeof schema.default === "string" ? schema.default : JSON.stringify(schema.default)} by default`;
  const [example] = Array.isArray(schema.examples) ? schema.examples : [];
  return example === undefined ? "" : `such as ${typeof example === "string" ? example : JSON.stringify(example)}`;
}
