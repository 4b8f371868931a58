import { expect, test } from "vitest";
import { sampleArguments } from "./sample";

test("a sample has what is required, with examples and bounds", () => {
  const schema = {
    type: "object",
    properties: {
      subject: { type: "string", minLength: 1, maxLength: 2 },
      code: { type: "string", examples: ["OSL"] },
      priority: { type: "integer", minimum: 2, maximum: 5 },
      share: { type: "number", exclusiveMinimum: 0 },
      status: { enum: ["open", "closed"] },
      note: { anyOf: [{ type: "string" }, { type: "null" }] },
      notify: { type: "boolean" },
      day: { type: "string", format: "date" },
      tags: { type: "array", minItems: 1, items: { type: "string" } },
      address: { type: "object", properties: { city: { type: "string" }, zip: { type: "string" } }, required: ["city"] },
      limit: { type: "integer", default: 20 },
    },
    required: ["subject", "code", "priority", "share", "status", "note", "notify", "day", "tags", "address"],
  };
  expect(sampleArguments(schema)).toEqual({
    subject: "te", code: "OSL", priority: 2, share: 0.5, status: "open", note: "text", notify: true,
    day: "2026-01-31", tags: ["text"], address: { city: "text" },
  });
});

test("a schema that refers to itself ends", () => {
  const schema = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] };
  expect(JSON.stringify(sampleArguments(schema)).length).toBeLessThan(200);
});
