import { expect, test } from "vitest";
import { readTool } from "./tool";

test("choices and defaults of 64 bits are sent with the digits that the schema has", () => {
  const text = '{"inputSchema":{"type":"object","properties":{"id":{"enum":[9007199254740993,1],"default":9007199254740993}}},"writes":true}';
  const tool = readTool(text);
  expect(tool.writes).toBe(true);
  expect(JSON.stringify(tool)).toBe(text);
});
