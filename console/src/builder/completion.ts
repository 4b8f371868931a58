// What may be written at a place of a contract's text, from the JSON Schema of contract files.
import type { Json, JsonSchema } from "../api/shapes";
import { resolve, schemasIn, typesOf } from "../schema/model";
import { spotAt, type PathPart, type TextSpot } from "./text-path";

export interface Suggestion {
  label: string;
  /** What is inserted in its place. */
  text: string;
  /** Its type, in a few words. */
  detail: string;
  help: string;
  kind: "key" | "value";
}

export interface Suggestions {
  from: number;
  options: Suggestion[];
}

const isSchema = (value: Json | undefined): value is JsonSchema => typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: Json | undefined) => (typeof value === "string" ? value : "");

/** The alternatives of a schema, each without references. */
function armsOf(schema: JsonSchema, root: JsonSchema): JsonSchema[] {
  const found = resolve(schema, root);
  const arms = schemasIn(found.anyOf ?? found.oneOf);
  return arms.length === 0 ? [found] : arms.flatMap((arm) => armsOf(arm, root));
}

const propertyOf = (arm: JsonSchema, name: string): JsonSchema[] => [propertiesOf(arm)[name]].filter((schema) => schema !== undefined);
const propertiesOf = (arm: JsonSchema) => (isSchema(arm.properties) ? arm.properties : {}) as Record<string, JsonSchema>;

/** Keeps the alternatives that allow the keys and words already present. If none does, all are kept. */
function fittingArms(arms: JsonSchema[], siblings: Map<string, string>): JsonSchema[] {
  const fits = (arm: JsonSchema) =>
    [...siblings].every(([key, value]) => {
      const property = propertiesOf(arm)[key];
      if (property === undefined) return arm.additionalProperties !== false;
      return property.const === undefined || value === "" || property.const === value;
    });
  const fitting = arms.filter(fits);
  return fitting.length > 0 ? fitting : arms;
}

function membersAt(schemas: JsonSchema[], part: PathPart, root: JsonSchema): JsonSchema[] {
  return schemas.flatMap((schema) =>
    armsOf(schema, root).flatMap((arm) => {
      if (typeof part === "number") return isSchema(arm.items) ? [arm.items] : [];
      const named = propertiesOf(arm)[part];
      if (named) return [named];
      return isSchema(arm.additionalProperties) ? [arm.additionalProperties] : [];
    }),
  );
}

const schemasAt = (root: JsonSchema, path: PathPart[]) => path.reduce<JsonSchema[]>((schemas, part) => membersAt(schemas, part, root), [root]);

export function suggestAt(root: JsonSchema, text: string, position: number): Suggestions | null {
  const spot = spotAt(text, position);
  if (!spot) return null;
  const arms = schemasAt(root, spot.path).flatMap((schema) => armsOf(schema, root));
  const keys = spot.kind === "value" ? [] : keysOf(fittingArms(arms, spot.siblings), spot, root);
  const values = spot.kind === "key" ? [] : valuesOf(spot.kind === "item" ? arms : valueArms(arms, spot), root);
  const options = [...keys, ...values];
  return options.length > 0 ? { from: spot.from, options } : null;
}

/** The word that chooses the alternative is being written, so that it rules none out. */
function valueArms(arms: JsonSchema[], { key, siblings }: TextSpot): JsonSchema[] {
  const others = new Map([...siblings].filter(([name]) => name !== key));
  return fittingArms(arms, others).flatMap((arm) => propertyOf(arm, key ?? ""));
}

function keysOf(arms: JsonSchema[], { siblings }: TextSpot, root: JsonSchema): Suggestion[] {
  const found = new Map<string, Suggestion>();
  for (const arm of arms) {
    const required = Array.isArray(arm.required) ? arm.required : [];
    for (const [name, property] of Object.entries(propertiesOf(arm))) {
      if (siblings.has(name) || found.has(name)) continue;
      const detail = [typeWords(property, root), required.includes(name) && "required"].filter(Boolean).join(", ");
      found.set(name, { label: name, text: `${name}: `, detail, help: textOf(resolve(property, root).description), kind: "key" });
    }
  }
  return [...found.values()];
}

function typeWords(schema: JsonSchema, root: JsonSchema): string {
  return [...new Set(armsOf(schema, root).flatMap(typesOf))].join(" or ");
}

function valuesOf(schemas: JsonSchema[], root: JsonSchema): Suggestion[] {
  const found = new Map<string, Suggestion>();
  const add = (value: Json, help: string) => {
    const label = typeof value === "string" ? value : JSON.stringify(value);
    if (!found.has(label)) found.set(label, { label, text: label, detail: "", help, kind: "value" });
  };
  for (const schema of schemas) {
    for (const arm of armsOf(schema, root)) {
      const help = textOf(arm.description);
      if (arm.const !== undefined) add(arm.const, help);
      for (const value of Array.isArray(arm.enum) ? arm.enum : []) add(value, help);
      if (typesOf(arm).includes("boolean")) [true, false].forEach((value) => add(value, help));
    }
  }
  return [...found.values()];
}

export interface KeyHelp {
  from: number;
  to: number;
  key: string;
  type: string;
  help: string;
}

/** What the key at a position means. */
export function helpAt(root: JsonSchema, text: string, position: number): KeyHelp | null {
  const from = position - (/[\w-]*$/.exec(text.slice(0, position))?.[0].length ?? 0);
  const to = position + (/^[\w-]*/.exec(text.slice(position))?.[0].length ?? 0);
  const key = text.slice(from, to);
  if (key === "" || !/^\s*:/.test(text.slice(to))) return null;
  const spot = spotAt(text, from);
  if (!spot || spot.kind === "value") return null;
  const arms = schemasAt(root, spot.path).flatMap((schema) => armsOf(schema, root));
  const property = fittingArms(arms, spot.siblings).flatMap((arm) => propertyOf(arm, key))[0];
  const help = property && textOf(resolve(property, root).description);
  return help ? { from, to, key, type: typeWords(property, root), help } : null;
}
