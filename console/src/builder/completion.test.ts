import { describe, expect, test } from "vitest";
import type { JsonSchema } from "../api/shapes";
import { helpAt, suggestAt } from "./completion";
import { spotAt } from "./text-path";

const field = (type: string, own: JsonSchema) => ({
  type: "object",
  properties: { name: { type: "string", description: "The name of the argument." }, type: { const: type, description: `${type} it is.` }, required: { type: "boolean" }, ...own },
  required: ["name"],
  additionalProperties: false,
});
const schema: JsonSchema = {
  anyOf: [{ $ref: "#/$defs/contract" }, { $ref: "#/$defs/form" }],
  $defs: {
    contract: {
      type: "object",
      properties: {
        contract: { type: "string", description: "Its name." },
        collections: { type: "object", additionalProperties: { $ref: "#/$defs/collection" } },
        tools: { type: "array", items: { $ref: "#/$defs/form" } },
      },
      additionalProperties: false,
    },
    form: {
      type: "object",
      properties: {
        tool: { type: "string" },
        verb: { type: "string", enum: ["list", "create"], description: "What it does." },
        fields: { type: "array", items: { $ref: "#/$defs/field" } },
      },
      additionalProperties: false,
    },
    collection: { type: "object", properties: { adapter: { type: "string" }, write: { type: "boolean", description: "Whether tools may write." }, key: { type: "array", items: { type: "string" } } }, additionalProperties: false },
    field: { anyOf: [field("text", { min_length: { type: "integer" } }), field("dropdown", { choices: { type: "array" } })] },
  },
};

/** The options at the bar. */
function options(marked: string) {
  const at = marked.indexOf("|");
  const text = marked.slice(0, at) + marked.slice(at + 1);
  return suggestAt(schema, text, at)?.options.map(({ label }) => label) ?? [];
}

describe("keys and words are those of the place", () => {
  test.each([
    ["|", ["contract", "collections", "tools", "tool", "verb", "fields"]],
    ["contract: a\n|", ["collections", "tools"]],
    ["contract: a\n|\ntools: []\n", ["collections"]],
    ["collections:\n  tickets:\n    |", ["adapter", "write", "key"]],
    ["collections:\n  tickets:\n    adapter: sheet\n    wr|\n    key: [id]\n", ["write"]],
    ["collections:\n  tickets:\n    write: |", ["true", "false"]],
    ["tools:\n  - |", ["tool", "verb", "fields"]],
    ["tools:\n- tool: a\n  |", ["verb", "fields"]],
    ["tools:\n- tool: a\n  verb: l|", ["list", "create"]],
    ["tools:\n  - tool: a\n    fields:\n      - { name: b, | }", ["type", "required", "min_length", "choices"]],
    ["tools:\n  - tool: a\n    fields:\n      - { name: b, type: dropdown, | }", ["required", "choices"]],
    ["tools:\n  - tool: a\n    fields:\n      - { name: b, type: |", ["text", "dropdown"]],
    ["tools:\n  - tool: a\n    fields:\n      - name: b\n        type: text\n        |", ["required", "min_length"]],
    ["tools:\n  - tool: a\n    fields:\n      - name: b\n        type: |\n        choices: [a]\n", ["dropdown"]],
    ["tools: [{ tool: a, verb: | }]", ["list", "create"]],
    ["contract: a # a comm|", []],
    ["tools:\n  - tool: |", []],
    ["tools:\n  - tool: a\n    description: |\n      ", []],
  ])("%j", (text, expected) => {
    expect(options(text)).toEqual(expected);
  });
});

test("a text of several lines has no keys, and what follows it does", () => {
  const text = "tools:\n  - tool: >\n      some words\n      verb";
  expect(spotAt(text, text.length)).toBeNull();
  expect(options("tools:\n  - tool: >\n      some words\n    |")).toEqual(["verb", "fields"]);
});

test("a key replaces the typed part of it, and explains its meaning", () => {
  const found = suggestAt(schema, "contract: a\ntoo", 15);
  expect(found?.from).toBe(12);
  const write = suggestAt(schema, "collections:\n  a:\n    w", 23)?.options.find(({ label }) => label === "write");
  expect(write).toMatchObject({ text: "write: ", detail: "boolean", help: "Whether tools may write." });
  const name = suggestAt(schema, "tools:\n- fields:\n  - ", 21)?.options.find(({ label }) => label === "name");
  expect(name?.detail).toBe("string, required");
});

test("a key under the pointer is explained, a value is not", () => {
  const text = "tools:\n  - tool: verb\n    verb: list\n";
  expect(helpAt(schema, text, text.lastIndexOf("verb") + 2)).toMatchObject({ key: "verb", help: "What it does." });
  expect(helpAt(schema, text, text.indexOf("verb") + 2)).toBeNull();
});
