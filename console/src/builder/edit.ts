// Changes to the text of a contract. Only what changes is rewritten: comments, order and the author's spacing are kept.
import { isMap, isScalar, isSeq, parseDocument, type Document, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";
import type { Json } from "../api/shapes";
import { lineBreakOf, withLineBreaks } from "./line-breaks";
import { writeFlow, writeItem, writePair, type Notation } from "./written";

/** The place of a value: names of members and positions in lists. */
export type Place = (string | number)[];

export type Change =
  | { kind: "set"; at: Place; value: Json }
  | { kind: "remove"; at: Place }
  | { kind: "insert"; at: Place; index: number; value: Json }
  | { kind: "move"; at: Place; from: number; to: number };

/** The text is not YAML, or uses an anchor for this value. */
export class UneditableText extends Error {}

/** Returns the text with the change made. */
export function changeText(text: string, change: Change): string {
  const { document, value } = readText(text);
  if (value === undefined) throw new UneditableText("The text cannot be read as one YAML document now. Mend it in the text first.");
  const wanted = JSON.stringify(changeValue(value, change));
  const spliced = splice(text, document, change);
  if (spliced !== null && meaning(spliced) === wanted) return spliced;
  // Rare ways of writing are written anew as a whole. Comments and order are kept by that too.
  const whole = rewriteWhole(text, change);
  if (whole !== null && meaning(whole) === wanted) return whole;
  throw new UneditableText("This part is written in a way that only the text can change.");
}

interface ReadText {
  document: Document;
  /** The value; undefined where the text is not YAML, or has an alias that cannot be replaced. */
  value: Json | undefined;
  /** The value as JSON. */
  meaning: string | undefined;
}

/** The texts that were read last. A text that was just produced is the next one to be changed, and large ones take a while to read. */
const lastRead = new Map<string, ReadText>();
const LAST_MAX = 3;

/** The document must not be changed. */
export function readText(text: string): ReadText {
  const known = lastRead.get(text);
  if (known) return known;
  const document = parse(text);
  const read = { document, ...(document.errors.length > 0 ? UNREADABLE : readValue(document)) };
  lastRead.set(text, read);
  const [oldest] = lastRead.keys();
  if (lastRead.size > LAST_MAX && oldest !== undefined) lastRead.delete(oldest);
  return read;
}

const UNREADABLE = { value: undefined, meaning: undefined };
/** The uses of anchors that the gateway allows in a text. */
const ALIASES_MAX = 1_000;

/** An alias may have no anchor, be inside what it names, or expand to too much: then there is no value. */
function readValue(document: Document): Omit<ReadText, "document"> {
  try {
    const value = (document.toJS({ maxAliasCount: ALIASES_MAX }) ?? {}) as Json;
    return { value, meaning: JSON.stringify(value) };
  } catch {
    return UNREADABLE;
  }
}

/** With a lower level, a second document would be no error, and a rewrite would delete it. */
const parse = (text: string): Document => parseDocument(text, { prettyErrors: false, logLevel: "error" });

const meaning = (text: string) => readText(text).meaning;

/** Makes the change in the value itself. */
export function changeValue(root: Json, change: Change): Json {
  if (change.kind === "set" && change.at.length === 0) return change.value;
  const copy = structuredClone(root ?? {}) as Json;
  if (change.kind === "set" || change.kind === "remove") {
    const parent = valueAt(copy, change.at.slice(0, -1)) as { [name: string]: Json } | Json[];
    const last = change.at.at(-1) as string | number;
    if (change.kind === "set") (parent as { [name: string | number]: Json })[last] = change.value;
    else if (Array.isArray(parent)) parent.splice(Number(last), 1);
    else delete (parent as { [name: string | number]: Json })[last];
    return copy;
  }
  const list = listAt(copy, change.at);
  if (change.kind === "insert") list.splice(change.index, 0, change.value);
  else list.splice(change.to, 0, ...list.splice(change.from, 1));
  return copy;
}

function listAt(root: Json, at: Place): Json[] {
  const found = valueAt(root, at);
  if (Array.isArray(found)) return found;
  const made: Json[] = [];
  (valueAt(root, at.slice(0, -1)) as { [name: string | number]: Json })[at.at(-1) as string] = made;
  return made;
}

export function valueAt(root: Json | undefined, at: Place): Json | undefined {
  let found = root;
  for (const part of at) {
    if (typeof found !== "object" || found === null) return undefined;
    found = (found as { [name: string | number]: Json })[part];
  }
  return found;
}

/** Returns null where the document cannot make the change, as inside an alias. */
function rewriteWhole(text: string, change: Change): string | null {
  try {
    return rewrite(parse(text), change, lineBreakOf(text));
  } catch {
    return null;
  }
}

function rewrite(document: Document, change: Change, lineBreak: string): string {
  const { at } = change;
  if (change.kind === "set") document.setIn(at, document.createNode(change.value));
  else if (change.kind === "remove") document.deleteIn(at);
  else {
    const list = document.getIn(at, true);
    if (!isSeq(list)) document.setIn(at, document.createNode([(change as { value: Json }).value]));
    else if (change.kind === "insert") list.items.splice(change.index, 0, document.createNode(change.value));
    else list.items.splice(change.to, 0, ...list.items.splice(change.from, 1));
  }
  return withLineBreaks(document.toString({ lineWidth: 0 }), lineBreak);
}

type Ranged = Node & { range: [number, number, number] };

const isRanged = (node: unknown): node is Ranged => typeof node === "object" && node !== null && Array.isArray((node as Node).range);

/** Returns null where the text is written in an unsupported way. */
function splice(text: string, document: Document, change: Change): string | null {
  const source = new SourceText(text);
  if (change.kind === "set" || change.kind === "remove") {
    const parent = nodeAt(document, change.at.slice(0, -1));
    const last = change.at.at(-1);
    if (isMap(parent) && typeof last === "string") {
      return change.kind === "set" ? setMember(source, parent, last, change.value) : removeMember(source, parent, last);
    }
    if (isSeq(parent) && typeof last === "number") {
      return change.kind === "set" ? setItem(source, parent, last, change.value) : removeItem(source, document, parent, change.at);
    }
    return null;
  }
  const list = nodeAt(document, change.at);
  if (isSeq(list) && list.items.length > 0) {
    return change.kind === "insert" ? insertItem(source, list, change.index, change.value) : moveItem(source, list, change.from, change.to);
  }
  if (change.kind === "move") return null;
  const parent = nodeAt(document, change.at.slice(0, -1));
  const name = change.at.at(-1);
  return isMap(parent) && typeof name === "string" ? setMember(source, parent, name, [change.value]) : null;
}

function nodeAt(document: Document, at: Place): Node | null {
  return (at.length === 0 ? document.contents : (document.getIn(at, true) as Node | undefined)) ?? null;
}

/** The text with what its lines reveal. */
class SourceText {
  readonly isJson: boolean;
  readonly lineBreak: string;

  constructor(readonly text: string) {
    this.isJson = /^\s*[{[]/.test(text);
    this.lineBreak = lineBreakOf(text);
  }

  lineStart(at: number): number {
    return this.text.lastIndexOf("\n", at - 1) + 1;
  }

  /** The place after the line that `at` is in; `at` itself where it begins a line. */
  lineEnd(at: number): number {
    if (at > 0 && this.text[at - 1] === "\n") return at;
    const end = this.text.indexOf("\n", at);
    return end < 0 ? this.text.length : end + 1;
  }

  /** The place after the comments that follow `at`, the start of a line, and are deeper than `column`. */
  commentsEnd(at: number, column: number): number {
    let end = at;
    for (let next = at; next < this.text.length; ) {
      const after = this.lineEnd(next + 1);
      const line = this.text.slice(next, after);
      const comment = /^( *)#/.exec(line);
      if (comment ? (comment[1]?.length ?? 0) <= column : line.trim() !== "") break;
      next = after;
      if (comment) end = after;
    }
    return end;
  }

  column(at: number): number {
    return at - this.lineStart(at);
  }

  notation(isFlow: boolean): Notation {
    return this.isJson ? "json" : isFlow ? "flow" : "block";
  }

  /** Replaces a part. A line that is added after the last one is separated from it. */
  replace(from: number, to: number, by: string): string {
    const before = this.text.slice(0, from);
    const parted = from === this.text.length && before !== "" && !before.endsWith("\n") && by.endsWith("\n") ? "\n" : "";
    return before + withLineBreaks(parted + by, this.lineBreak) + this.text.slice(to);
  }

  /** The end of a node without a trailing line break. */
  contentEnd(node: Ranged): number {
    const [from, end] = node.range;
    const lineBreak = /\r?\n$/.exec(this.text.slice(from, end));
    return end - (lineBreak?.[0].length ?? 0);
  }
}

type RangedPair = Pair<Ranged, Ranged | null>;

function pairsOf(map: YAMLMap): RangedPair[] | null {
  const pairs = map.items as RangedPair[];
  return pairs.every((pair) => isRanged(pair.key) && (pair.value === null || isRanged(pair.value))) ? pairs : null;
}

const keyText = (pair: RangedPair) => (isScalar(pair.key) ? String(pair.key.value) : "");
const isFlow = (node: { flow?: boolean }) => node.flow === true;
const isBlock = (node: unknown) => (isMap(node) || isSeq(node)) && !isFlow(node);
const endOf = (pair: RangedPair) => pair.value?.range[1] ?? pair.key.range[1];

function setMember(source: SourceText, map: YAMLMap, name: string, value: Json): string | null {
  const pairs = pairsOf(map);
  if (!pairs || !isRanged(map)) return null;
  const pair = pairs.find((candidate) => keyText(candidate) === name);
  if (pair) return replaceValue(source, map, pair, value);
  const last = pairs.at(-1);
  if (isFlow(map)) {
    const written = writePair(name, value, source.notation(true), 0);
    if (!last) return source.replace(map.range[0] + 1, map.range[1] - 1, source.isJson ? written : ` ${written} `);
    const end = endOf(last);
    if (source.text.slice(end, map.range[1] - 1).includes(",")) return null;
    return source.replace(end, end, `,${gap(source, pairs)}${written}`);
  }
  if (!last || !pairs[0]) return null;
  const column = source.column(pairs[0].key.range[0]);
  const end = source.lineEnd(endOf(last));
  return source.replace(end, end, `${" ".repeat(column)}${writePair(name, value, "block", column)}\n`);
}

/** What is between two members of a map: JSON is mostly written a line for each. */
function gap(source: SourceText, pairs: RangedPair[]): string {
  const [first, second] = pairs;
  if (!first || !second) return " ";
  const between = source.text.slice(endOf(first), second.key.range[0]);
  return /^,\s+$/.test(between) && source.isJson ? between.slice(1) : " ";
}

function replaceValue(source: SourceText, map: YAMLMap, pair: RangedPair, value: Json): string | null {
  const colon = source.text.indexOf(":", pair.key.range[1]);
  if (colon < 0) return null;
  const { value: node } = pair;
  const isInFlow = isFlow(map);
  const column = source.column(pair.key.range[0]);
  const isLong = !isInFlow && !source.isJson && needsLines(value);
  const quote = isScalar(node) ? node.type : undefined;
  const written = isLong ? writePair("", value, "block", column).slice(1) : ` ${writeFlow(value, source.notation(isInFlow), quote)}`;
  if (node === null || (isScalar(node) && node.range[0] === node.range[1])) return source.replace(colon + 1, colon + 1, written);
  const isWhole = isBlock(node) || (isScalar(node) && node.type?.startsWith("BLOCK")) || isLong;
  const from = isWhole ? colon + 1 : node.range[0];
  return source.replace(from, source.contentEnd(node), isWhole ? written : written.slice(1));
}

/** Lines of text and lists of objects are not written in one line. */
function needsLines(value: Json): boolean {
  if (typeof value === "string") return value.trimEnd().includes("\n");
  return Array.isArray(value) && value.some((item) => typeof item === "object" && item !== null);
}

function removeMember(source: SourceText, map: YAMLMap, name: string): string | null {
  const pairs = pairsOf(map);
  const at = pairs?.findIndex((pair) => keyText(pair) === name) ?? -1;
  const pair = pairs?.[at];
  if (!pairs || !pair || pairs.length === 1) return null;
  const [before, after] = [pairs[at - 1], pairs[at + 1]];
  const start = pair.key.range[0];
  if (isFlow(map)) {
    const [from, to] = after ? [start, after.key.range[0]] : [before ? endOf(before) : start, endOf(pair)];
    return /#/.test(source.text.slice(after ? endOf(pair) : from, after ? to : start)) ? null : source.replace(from, to, "");
  }
  const line = source.lineStart(start);
  if (source.text.slice(line, start).trim() === "") return source.replace(line, source.lineEnd(endOf(pair)), "");
  // It follows the dash of its list: the next key takes its place.
  if (!after || source.text.slice(endOf(pair), after.key.range[0]).includes("#")) return null;
  return source.replace(start, after.key.range[0], "");
}

function setItem(source: SourceText, list: YAMLSeq, index: number, value: Json): string | null {
  const item = list.items[index];
  if (!isRanged(item)) return null;
  const from = item.range[0];
  if (isBlock(item)) return source.replace(from, source.contentEnd(item), writeItem(value, source.column(from)));
  const written = writeFlow(value, source.notation(isFlow(list)), isScalar(item) ? item.type : undefined);
  return source.replace(from, item.range[1], written);
}

/** The lines of the items of a list in block style, each with the comment above it and the comments at its end. */
function segments(source: SourceText, list: YAMLSeq): { from: number; to: number; dash: number }[] | null {
  const { text } = source;
  const found: { from: number; to: number; dash: number }[] = [];
  for (const item of list.items) {
    if (!isRanged(item)) return null;
    const line = source.lineStart(item.range[0]);
    const dash = /^( *)- +$/.exec(text.slice(line, item.range[0]))?.[1]?.length;
    if (dash === undefined) return null;
    const floor = found.at(-1)?.to ?? 0;
    let from = line;
    while (from > floor) {
      const above = source.lineStart(from - 1);
      const comment = /^( *)#/.exec(text.slice(above, from));
      if (above < floor || !comment || (comment[1]?.length ?? 0) !== dash) break;
      from = above;
    }
    found.push({ from, to: source.commentsEnd(source.lineEnd(item.range[1]), dash), dash });
  }
  return found;
}

function moveItem(source: SourceText, list: YAMLSeq, from: number, to: number): string | null {
  const { text } = source;
  const parts = isFlow(list)
    ? list.items.map((item) => (isRanged(item) ? { from: item.range[0], to: item.range[1] } : null))
    : segments(source, list);
  if (!parts || parts.some((part) => part === null)) return null;
  const places = parts as { from: number; to: number }[];
  const written = places.map((part) => text.slice(part.from, part.to)).map((part) => (isFlow(list) || part.endsWith("\n") ? part : part + source.lineBreak));
  const moved = [...written];
  moved.splice(to, 0, ...moved.splice(from, 1));
  let made = text.slice(0, places[0]?.from ?? 0);
  moved.forEach((part, index) => {
    const place = places[index];
    const next = places[index + 1];
    made += part + text.slice(place?.to ?? 0, next ? next.from : text.length);
  });
  return made;
}

function insertItem(source: SourceText, list: YAMLSeq, index: number, value: Json): string | null {
  if (isFlow(list)) {
    const items = list.items as Ranged[];
    const written = writeFlow(value, source.notation(true));
    const next = items[index];
    if (next) return source.replace(next.range[0], next.range[0], `${written}, `);
    const last = items.at(-1);
    const before = items.at(-2);
    const between = last && before ? source.text.slice(before.range[1], last.range[0]) : "";
    const parted = /^,\s+$/.test(between) ? between : ", ";
    return last ? source.replace(last.range[1], last.range[1], parted + written) : null;
  }
  const parts = segments(source, list);
  const [first] = parts ?? [];
  if (!parts || !first) return null;
  const at = parts[index]?.from ?? parts.at(-1)?.to ?? 0;
  return source.replace(at, at, `${" ".repeat(first.dash)}- ${writeItem(value, first.dash + 2)}\n`);
}

function removeItem(source: SourceText, document: Document, list: YAMLSeq, at: Place): string | null {
  const index = at.at(-1) as number;
  if (list.items.length === 1) {
    const parent = nodeAt(document, at.slice(0, -2));
    const name = at.at(-2);
    return isMap(parent) && typeof name === "string" ? setMember(source, parent, name, []) : null;
  }
  if (isFlow(list)) {
    const items = list.items as Ranged[];
    const [item, next, before] = [items[index], items[index + 1], items[index - 1]];
    if (!item) return null;
    // An item that has a line takes the comment after it along.
    const [line, end] = [source.lineStart(item.range[0]), source.lineEnd(item.range[1])];
    const hasLine = !source.isJson && source.text.slice(line, item.range[0]).trim() === "" && /^,?\s*(#.*\s*)?$/.test(source.text.slice(item.range[1], end));
    if (hasLine) return source.replace(line, end, "");
    if (next) return source.replace(item.range[0], next.range[0], "");
    const from = before?.range[1] ?? item.range[0];
    return source.text.slice(from, item.range[0]).includes("#") ? null : source.replace(from, item.range[1], "");
  }
  const part = segments(source, list)?.[index];
  return part ? source.replace(part.from, part.to, "") : null;
}
