// The items of a difference: which are shown, and in which order.
import type { DiffItem } from "../../api/shapes";

const ORDER = ["breaking", "undecided", "review", "compatible", "first", "cosmetic", "identical"];

/** A different digest of all definitions is not a change in addition to those listed. */
const DEFINITIONS = "definitions-changed";

export const shownItems = (items: DiffItem[]): DiffItem[] => items.filter(({ rule }) => rule !== DEFINITIONS);

/** Returns whether the change is in a text that a model reads. */
export const isModelText = ({ rule }: DiffItem): boolean => /(^|-)text-changed$/.test(rule);

/** Groups items by their tool. The worst come first; if the change is foreign, texts that a model reads come before all others. */
export function orderByTool(items: DiffItem[], isForeign = false): [string, DiffItem[]][] {
  const groups = new Map<string, DiffItem[]>();
  for (const item of items) {
    const group = groups.get(item.tool ?? "") ?? [];
    group.push(item);
    groups.set(item.tool ?? "", group);
  }
  const rank = (item: DiffItem | undefined) => (item === undefined ? ORDER.length : isForeign && isModelText(item) ? -1 : ORDER.indexOf(item.class));
  // What a server writes in addition to a tool comes last: no model is shown it.
  const isBeside = (item: DiffItem) => Number(item.path.startsWith("/_meta"));
  for (const group of groups.values()) group.sort((a, b) => rank(a) - rank(b) || isBeside(a) - isBeside(b));
  return [...groups].sort(([, a], [, b]) => rank(a[0]) - rank(b[0]));
}
