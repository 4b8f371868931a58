import { expect, test } from "vitest";
import { schemaLines } from "./lines";

test("the lines are the JSON, and name their pointers", () => {
  const schema = { type: "object", properties: { "a/b": { type: "string", enum: ["x", "y"] }, c: { anyOf: [{ type: "number" }, { type: "null" }] } }, required: [] };
  const lines = schemaLines(schema);
  expect(JSON.parse(lines.map(({ text }) => text).join("\n"))).toEqual(schema);
  const of = (pointer: string) => lines.filter((line) => line.pointer.startsWith(pointer)).map(({ text }) => text.trim());
  expect(of("/properties/a~1b")).toEqual(['"a/b": {', '"type": "string",', '"enum": ["x", "y"]', "},"]);
  expect(of("/properties/c/anyOf/1")).toEqual(["{", '"type": "null"', "}"]);
});
