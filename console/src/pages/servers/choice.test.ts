import { expect, test } from "vitest";
import { parse } from "yaml";
import { addBlock } from "./added";
import { doubleNames, EVERYTHING, isToolName, overlayStart, overlayText, tickItem } from "./choice";

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

test("one block writes the choice and adds the server", () => {
  const server = { name: "every", url: "http://x/mcp", isSse: false, headers: [], words: [], environment: [] };
  const overlay = overlayText("every", tickItem(EVERYTHING, "shout", false));
  expect(addBlock(server, "/srv/my weir", "every.yaml", overlay)).toBe(
    "cd '/srv/my weir'\ncat > every.yaml <<'EOF'\n# Which tools of the server `every` agents see, and under which names.\ncontract: every\nupstream: every\nleave:\n  - shout\nEOF\n" +
      "weir upstream add every http://x/mcp --overlay every.yaml",
  );
  expect(addBlock(server, "/srv", "", null)).toBe("cd /srv\nweir upstream add every http://x/mcp");
  expect(parse(overlayStart("every"))).toEqual({ contract: "every", upstream: "every", take: ["*"], leave: [] });
});

test("a tool that is ticked again is no longer left out", () => {
  const left = tickItem(tickItem(EVERYTHING, "greet", false), "echo", false);
  expect(left.left).toEqual(["greet", "echo"]);
  expect(tickItem(left, "greet", true).left).toEqual(["echo"]);
});
