import { expect, test } from "vitest";
import { parse } from "yaml";
import { doubleNames, EVERYTHING, isToolName, overlayText } from "./choice";

test("everything as it is needs no overlay", () => {
  expect(overlayText("files", EVERYTHING)).toBeNull();
  expect(overlayText("files", { left: [], names: { read: "read", write: "" } })).toBeNull();
});

test("an overlay leaves tools out and renames others, whatever they are called", () => {
  const text = overlayText("files", { left: ["delete: all", "yes"], names: { read: "open_file", yes: "no" } });
  expect(parse(text ?? "")).toEqual({
    contract: "files",
    upstream: "files",
    leave: ["delete: all", "yes"],
    tools: [{ from: "read", tool: "open_file" }],
  });
});

test("two tools of one name are found, unless one is left out", () => {
  expect(doubleNames(["a", "b", "c"], { left: [], names: { a: "b" } })).toEqual(["b"]);
  expect(doubleNames(["a", "b", "c"], { left: ["b"], names: { a: "b" } })).toEqual([]);
});

test.each([
  ["open_file", true],
  ["open file", false],
  ["", false],
])("whether %s is a name: %s", (name, isName) => {
  expect(isToolName(name)).toBe(isName);
});
