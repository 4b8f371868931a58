import { expect, test } from "vitest";
import { copiedCalls } from "./call-copies";

const call = { url: "http://x/mcp", tool: "t", argumentsText: `{"a":"it's","n":9007199254740993}`, needsKey: true };

test("a shell reads the arguments as they were typed", () => {
  for (const { name, text } of copiedCalls(call).slice(0, 2)) {
    expect(text, name).toContain(`"a":"it'\\''s"`);
    expect(text, name).toContain("9007199254740993");
  }
});

test("each text calls the tool, and names the variable of the key where one is needed", () => {
  for (const { name, text } of copiedCalls(call)) {
    expect(text, name).toContain("http://x/mcp");
    if (name !== "weir call") expect(text, name).toContain("WEIR_KEY");
  }
  for (const { name, text } of copiedCalls({ ...call, needsKey: false })) expect(text, name).not.toContain("WEIR_KEY");
});

test("a program has the arguments as a literal", () => {
  const [, , python, typescript] = copiedCalls(call);
  expect(python?.text).toContain(String.raw`json.loads("{\"a\":\"it's\",\"n\":9007199254740993}")`);
  expect(typescript?.text).toContain(`arguments: {"a":"it's","n":9007199254740993} }`);
});
