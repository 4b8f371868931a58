// A call that fits a schema as far as its keywords tell: every required argument, with an example if there is one.
import type { Json, JsonSchema } from "../api/shapes";
import { fieldModel, propertiesOf, requiredOf, type FieldModel } from "./model";

/** Below this nothing more is filled in: a schema may refer to itself. */
const DEPTH_MAX = 6;

/** Returns arguments with all that is required. */
export function sampleArguments(schema: JsonSchema): { [name: string]: Json } {
  return sampleRecord(fieldModel(schema, schema).schema, schema, 0);
}

function sampleRecord(schema: JsonSchema, root: JsonSchema, depth: number): { [name: string]: Json } {
  const required = requiredOf(schema);
  const members = propertiesOf(schema).filter(([name]) => required.includes(name));
  return Object.fromEntries(members.map(([name, member]) => [name, sampleValue(member, root, depth + 1)]));
}

function sampleValue(given: JsonSchema, root: JsonSchema, depth: number): Json {
  const model = fieldModel(given, root);
  const { schema } = model;
  const [example] = Array.isArray(schema.examples) ? schema.examples : [];
  const known = example ?? schema.default;
  if (known !== undefined) return known;
  if (depth > DEPTH_MAX) return null;
  switch (model.kind) {
    case "choice":
      return model.choices[0] ?? null;
    case "boolean":
      return true;
    case "number":
      return sampleNumber(schema);
    case "date":
      return "2026-01-31";
    case "date-time":
      return "2026-01-31T12:00:00Z";
    case "file":
      return "";
    case "text":
    case "long":
      return sampleText(schema);
    case "record":
      return sampleRecord(schema, root, depth);
    case "list":
      return sampleList(model, root, depth);
    case "map":
      return {};
    case "union":
      return model.arms[0] ? sampleValue(model.arms[0], root, depth + 1) : null;
    default:
      return null;
  }
}

function sampleNumber(schema: JsonSchema): Json {
  const isWhole = schema.type === "integer";
  if (schema.minimum !== undefined) return schema.minimum;
  if (typeof schema.exclusiveMinimum === "number") return schema.exclusiveMinimum + (isWhole ? 1 : 0.5);
  if (schema.maximum !== undefined) return schema.maximum;
  if (typeof schema.exclusiveMaximum === "number") return schema.exclusiveMaximum - (isWhole ? 1 : 0.5);
  return 1;
}

/** A text with a pattern cannot be guessed, so the sample only shows that it is a text. */
function sampleText(schema: JsonSchema): string {
  const shortest = typeof schema.minLength === "number" ? schema.minLength : 0;
  const longest = typeof schema.maxLength === "number" ? schema.maxLength : Infinity;
  return "text".padEnd(Math.min(shortest, 200), " text").slice(0, longest);
}

function sampleList(model: FieldModel, root: JsonSchema, depth: number): Json[] {
  const least = typeof model.schema.minItems === "number" ? model.schema.minItems : 0;
  const items = (model.schema.items as JsonSchema | undefined) ?? {};
  return least > 0 ? [sampleValue(items, root, depth + 1)] : [];
}
