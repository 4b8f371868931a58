import { expect, test } from "vitest";
import type { DiffItem } from "../../api/shapes";
import { isModelText, orderByTool, shownItems } from "./items";

const item = (rule: string, tool: string, name: DiffItem["class"]): DiffItem => ({ rule, tool, class: name, path: "/", old: null, new: null, reason: "" });

test("words of another server come before every other change", () => {
  const items = [item("tool-removed", "gone", "breaking"), item("tool-text-changed", "echo", "cosmetic"), item("tool-added", "shout", "compatible")];
  expect(orderByTool(items, true).map(([tool]) => tool)).toEqual(["echo", "gone", "shout"]);
  expect(orderByTool(items).map(([tool]) => tool)).toEqual(["gone", "shout", "echo"]);
});

test("texts of tools, arguments, prompts and the contract are words for a model", () => {
  for (const rule of ["tool-text-changed", "item-text-changed", "contract-text-changed", "input-text-changed", "output-text-changed"]) {
    expect(isModelText(item(rule, "t", "cosmetic")), rule).toBe(true);
  }
  expect(isModelText(item("tool-icons-changed", "t", "cosmetic"))).toBe(false);
});

test("the digest of all definitions is not a separate change", () => {
  expect(shownItems([item("definitions-changed", "", "cosmetic"), item("tool-added", "t", "compatible")])).toHaveLength(1);
});
