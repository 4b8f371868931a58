import { expect, test } from "vitest";
import type { DiffItem } from "../../api/shapes";
import { orderByTool } from "./items";
import { textDifference } from "./lines";

const text = (lines: number) => Array.from({ length: lines }, (_, at) => `line ${at + 1}\n`).join("");

test("a difference shows three lines around a change and counts the others", () => {
  const lines = textDifference(text(20), text(20).replace("line 10\n", "line ten\n"));
  expect(lines[0]).toEqual({ kind: "skipped", lines: 6 });
  expect(lines.filter(({ kind }) => kind === "same")).toHaveLength(6);
  expect(lines).toContainEqual({ kind: "removed", number: 10, text: "line 10" });
  expect(lines).toContainEqual({ kind: "added", number: 10, text: "line ten" });
  expect(lines.at(-1)).toEqual({ kind: "skipped", lines: 7 });
});

test("equal texts have no line to show", () => {
  expect(textDifference(text(3), text(3))).toEqual([{ kind: "skipped", lines: 3 }]);
});

test("the worst change comes first, and so does the tool that has it", () => {
  const item = (tool: string, name: DiffItem["class"]) => ({ tool, class: name }) as DiffItem;
  const groups = orderByTool([item("a", "cosmetic"), item("b", "compatible"), item("b", "breaking")]);
  expect(groups.map(([tool]) => tool)).toEqual(["b", "a"]);
  expect(groups[0]?.[1].map((change) => change.class)).toEqual(["breaking", "compatible"]);
});
