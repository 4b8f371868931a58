// Finds the lines of faults in a contract's text. It is loaded with the editor, whose grammar it reads with.
import { yamlLanguage } from "@codemirror/lang-yaml";
import type { Fault } from "../api/problem";

type SyntaxNode = ReturnType<typeof yamlLanguage.parser.parse>["topNode"];

/** Returns the faults with the lines of their places. A place that is not in the text has the line of the part that would contain it. */
export function placeFaults(faults: Fault[], text: string): Fault[] {
  if (faults.length === 0) return faults;
  const root = yamlLanguage.parser.parse(text).topNode.getChild("Document")?.lastChild ?? null;
  return faults.map((fault) => ({ ...fault, line: fault.line ?? lineOfPlace(root, text, fault) }));
}

/** Returns the first and the last line of a part; null where it is the whole or is not in the text. */
export function linesOfPlace(text: string, place: string): [number, number] | null {
  let value = yamlLanguage.parser.parse(text).topNode.getChild("Document")?.lastChild ?? null;
  let found: SyntaxNode | null = null;
  for (const part of place.split("/").slice(1)) {
    found = value && findMember(value, text, part.replaceAll("~1", "/").replaceAll("~0", "~"));
    if (!found) return null;
    value = found.lastChild;
  }
  if (!found) return null;
  const line = (at: number) => text.slice(0, at).split("\n").length;
  return [line(found.from), line(Math.max(found.from, found.from + text.slice(found.from, found.to).trimEnd().length))];
}

function lineOfPlace(root: SyntaxNode | null, text: string, { place, message }: Fault): number | undefined {
  let value = root;
  let at: number | undefined;
  for (const part of place.split("/").slice(1)) {
    const found = value && findMember(value, text, part.replaceAll("~1", "/").replaceAll("~0", "~"));
    if (!found) break;
    at = found.from;
    value = found.lastChild;
  }
  if (at !== undefined) return text.slice(0, at).split("\n").length;
  // A text that is not YAML has no places, and the parser reports where it stopped.
  const stopped = /\bline (\d+)/.exec(message)?.[1];
  return stopped ? Number(stopped) : undefined;
}

/** Returns the pair or the item of a mapping or a list. */
function findMember(value: SyntaxNode, text: string, part: string): SyntaxNode | null {
  const pairs = value.getChildren("Pair");
  const items = value.getChildren("Item");
  if (items.length > 0) return items[Number(part)] ?? null;
  const isNamed = (pair: SyntaxNode) => {
    const key = pair.getChild("Key");
    return key !== null && text.slice(key.from, key.to).replace(/^(["'])(.*)\1$/, "$2") === part;
  };
  return pairs.find(isNamed) ?? null;
}
