import { expect, test } from "vitest";
import type { Json, JsonSchema } from "../api/shapes";
import { fieldModel, isChoiceList, pointed, pointerPart, resolve, shownPaths, typedNumber, typeText, withMember } from "./model";

const kind = (schema: JsonSchema, root: JsonSchema = schema) => fieldModel(schema, root).kind;

test("a nullable alternative is the field of the other alternative", () => {
  const model = fieldModel({ anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], description: "How many" }, {});
  expect(model).toMatchObject({ kind: "number", isNullable: true });
  expect(model.schema).toMatchObject({ minimum: 1, description: "How many" });
});

test("a list of types with null is the field of the other type", () => {
  expect(fieldModel({ type: ["string", "null"] }, {})).toMatchObject({ kind: "text", isNullable: true });
});

test("an enum with null keeps null apart from its choices", () => {
  expect(fieldModel({ enum: ["a", "b", null] }, {})).toMatchObject({ kind: "choice", isNullable: true, choices: ["a", "b"] });
});

test("alternatives of constants are one choice", () => {
  expect(fieldModel({ oneOf: [{ const: "x" }, { const: "y" }, { type: "null" }] }, {})).toMatchObject({
    kind: "choice",
    isNullable: true,
    choices: ["x", "y"],
  });
});

test("several real alternatives remain a union", () => {
  expect(fieldModel({ anyOf: [{ type: "string" }, { type: "object", properties: {} }, { type: "null" }] }, {})).toMatchObject({
    kind: "union",
    isNullable: true,
  });
  expect(kind({ type: ["string", "integer"] })).toBe("union");
});

test("an object whose alternatives only require more is a record", () => {
  expect(kind({ type: "object", properties: { a: { type: "string" } }, anyOf: [{ required: ["a"] }] })).toBe("record");
});

test("references are followed, and the keywords next to them apply", () => {
  const root: JsonSchema = { $defs: { "a/b": { type: "string", format: "date", title: "Day" } } };
  expect(resolve({ $ref: "#/$defs/a~1b", title: "When" }, root)).toEqual({ type: "string", format: "date", title: "When" });
  expect(kind({ $ref: "#/$defs/a~1b" }, root)).toBe("date");
});

test("a schema that refers to itself ends", () => {
  const root: JsonSchema = { $defs: { loop: { $ref: "#/$defs/loop" } } };
  expect(kind({ $ref: "#/$defs/loop" }, root)).toBe("any");
});

test("parts that all hold are one record", () => {
  const schema: JsonSchema = { allOf: [{ properties: { a: { type: "string" } }, required: ["a"] }, { properties: { b: { type: "number" } } }] };
  expect(fieldModel(schema, schema).schema).toMatchObject({ properties: { a: {}, b: {} }, required: ["a"] });
});

test.each<[string, JsonSchema]>([
  ["text", { type: "string" }],
  ["long", { type: "string", maxLength: 4000 }],
  ["date-time", { type: "string", format: "date-time" }],
  ["number", { type: "number" }],
  ["boolean", { type: "boolean" }],
  ["list", { type: "array", items: { type: "string" } }],
  ["map", { type: "object", additionalProperties: { type: "string" } }],
  ["any", {}],
  ["any", { type: "object" }],
])("the field is %s", (expected, schema) => {
  expect(kind(schema)).toBe(expected);
});

test.each([
  ["5", 5],
  [" -1.50 ", -1.5],
  ["1e3", 1000],
  ["", undefined],
  ["five", "five"],
  ["05", "05"],
  ["1e999", "1e999"],
])("typed %j is sent as %j", (typed, sent) => {
  expect(typedNumber(typed)).toBe(sent);
});

test("pointers name members of any name", () => {
  expect(pointerPart("a/b~c")).toBe("/a~1b~0c");
  expect(pointed({ list: [{ "a/b": 1 }] }, "/list/0/a~1b")).toBe(1);
  expect(pointed({ a: null }, "/a/b")).toBeUndefined();
});

test("a member is removed by no value", () => {
  expect(withMember({ a: 1, b: 2 }, "a", undefined)).toEqual({ b: 2 });
  expect(withMember({ a: 1 }, "a", null)).toEqual({ a: null });
});

test.each<[string, JsonSchema]>([
  ["integer, 1 to 5", { type: "integer", minimum: 1, maximum: 5 }],
  ['one of "a", "b" or null', { enum: ["a", "b", null] }],
  ["list of string, at most 3 items", { type: "array", items: { type: "string" }, maxItems: 3 }],
  ["string, date or null", { anyOf: [{ type: "string", format: "date" }, { type: "null" }] }],
])("a reader reads %s", (expected, schema) => {
  expect(typeText(schema, schema)).toBe(expected);
});

test("a fault has a field where the form shows its place, and only there", () => {
  const schema: JsonSchema = {
    type: "object",
    required: ["who"],
    properties: {
      who: { type: "object", required: [], properties: { name: { type: "string" }, due: { anyOf: [{ type: "string", format: "date" }, { type: "null" }] } } },
      place: { type: "object", properties: { city: { type: "string" } } },
      parts: { type: "array", items: { type: "object", properties: { a: { type: "integer" } } } },
      tags: { type: "array", uniqueItems: true, items: { type: "string", enum: ["x", "y"] } },
      either: { anyOf: [{ type: "string" }, { type: "object", properties: { deep: { type: "string" } } }] },
    },
  };
  const top = ["/who", "/who/name", "/who/due", "/place", "/parts", "/tags", "/either"];
  expect(shownPaths(schema, schema, {})).toEqual(top);
  const value: Json = { who: { due: null }, place: { city: "Oslo" }, parts: [{ a: 1 }, {}], tags: ["z"], either: { deep: "x" } };
  const more = ["/place/city", "/parts/0", "/parts/0/a", "/parts/1", "/parts/1/a", "/either", "/either/deep"];
  expect([...new Set(shownPaths(schema, schema, value))].sort()).toEqual([...new Set([...top, ...more])].sort());
  const properties = schema.properties as Record<string, JsonSchema>;
  expect(isChoiceList(fieldModel(properties.tags ?? {}, schema), schema)).toBe(true);
  expect(isChoiceList(fieldModel(properties.parts ?? {}, schema), schema)).toBe(false);
});

test("a schema that needs itself ends", () => {
  const node: JsonSchema = { type: "object", properties: { next: { $ref: "#/$defs/node" } }, required: ["next"] };
  const paths = shownPaths({ $ref: "#/$defs/node" }, { $defs: { node } }, {});
  expect(paths.length).toBeLessThan(20);
});
