// Where a position of a YAML text is, line by line, so that a text that is being typed need not be whole.

export type PathPart = string | number;

export interface TextSpot {
  /** The mapping, list or value that contains the position. */
  path: PathPart[];
  /** Whether a key or a value is written there; of an item of a list it may be either. */
  kind: "key" | "value" | "item";
  /** The key of the value. */
  key: string | null;
  /** The part of it before the position, and where that begins. */
  partial: string;
  from: number;
  /** Keys of the same mapping with their plain values, as far as the text has them. */
  siblings: Map<string, string>;
}

interface Frame {
  kind: "map" | "list";
  /** The column of its keys or dashes; of one in brackets, that of nothing. */
  indent: number;
  key: string;
  index: number;
  values: Map<string, string>;
}

const KEY = /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'#{}[\],&*!|>%@`-][^#{}[\],]*?|-[^\s#{}[\],:][^#{}[\],]*?)\s*:(?=\s|$)/;
const BLOCK_SCALAR = /^[|>][-+0-9]*\s*(#.*)?$/;
const IN_BRACKETS = Number.POSITIVE_INFINITY;

const unquoted = (text: string) => text.trim().replace(/^(["'])(.*)\1$/, "$2");
const withoutComment = (text: string) => text.replace(/(^|\s)#.*$/, "").trim();
const makeFrame = (kind: Frame["kind"], indent: number): Frame => ({ kind, indent, key: "", index: 0, values: new Map() });

/** Reads the lines before a position, and tracks what encloses them. */
class LineReader {
  frames: Frame[] = [];
  /** The column of the key whose value is a text of several lines. */
  scalarIndent: number | null = null;
  quote = "";
  /** The text since the last bracket, comma or colon, and where it begins. */
  token = { text: "", from: 0 };

  get isInBrackets() {
    return this.frames.at(-1)?.indent === IN_BRACKETS;
  }

  /** Closes what ended before a line of this indent. */
  closeTo(indent: number, kind: Frame["kind"]) {
    for (let top = this.frames.at(-1); top; top = this.frames.at(-1)) {
      const isOver = top.indent > indent || (top.indent === indent && top.kind !== kind && kind === "map");
      if (!isOver) break;
      this.frames.pop();
    }
  }

  readLine(line: string, offset: number) {
    if (this.isInBrackets) {
      this.readBrackets(line, offset);
      return;
    }
    const indent = line.search(/\S/);
    if (this.scalarIndent !== null) {
      if (indent < 0 || indent > this.scalarIndent) return;
      this.scalarIndent = null;
    }
    if (indent < 0 || line[indent] === "#" || /^(---|\.\.\.)/.test(line)) return;
    const { column, rest } = this.readDashes(line, indent);
    const key = KEY.exec(rest);
    if (!key) {
      if (/^[{[]/.test(rest)) this.readBrackets(rest, offset + column);
      return;
    }
    const value = this.enterKey(key, column, rest);
    const text = value.trimStart();
    if (BLOCK_SCALAR.test(text)) this.scalarIndent = column;
    else if (/^[{[]/.test(text)) this.readBrackets(text, offset + line.length - text.length);
  }

  /** Enters the items that begin on a line. */
  readDashes(line: string, indent: number): { column: number; rest: string } {
    let column = indent;
    let rest = line.slice(column);
    for (let dash = /^-(\s+|$)/.exec(rest); dash; dash = /^-(\s+|$)/.exec(rest)) {
      this.closeTo(column, "list");
      const top = this.frames.at(-1);
      if (top?.kind === "list" && top.indent === column) top.index += 1;
      else this.frames.push(makeFrame("list", column));
      column += dash[0].length;
      rest = line.slice(column);
    }
    return { column, rest };
  }

  /** Enters a key, and returns what follows it. */
  enterKey(found: RegExpExecArray, column: number, rest: string): string {
    this.closeTo(column, "map");
    const top = this.frames.at(-1);
    const frame = top?.kind === "map" && top.indent === column ? top : makeFrame("map", column);
    if (frame !== top) this.frames.push(frame);
    const value = rest.slice(found[0].length);
    frame.key = unquoted(found[1] ?? "");
    frame.values.set(frame.key, unquoted(withoutComment(value)));
    return value;
  }

  readBrackets(text: string, offset: number) {
    this.token = { text: "", from: offset };
    for (let at = 0; at < text.length; at += 1) {
      const character = text[at] ?? "";
      if (this.quote) {
        if (character === this.quote) this.quote = "";
        this.token.text += character;
        continue;
      }
      const isStart = this.token.text.trim() === "";
      if (isStart && (character === '"' || character === "'")) this.quote = character;
      if (character === "#" && (at === 0 || /\s/.test(text[at - 1] ?? ""))) return;
      if (/[{[\]},]/.test(character) || (character === ":" && /[\s,}\]]|^$/.test(text[at + 1] ?? ""))) {
        this.readMark(character);
        if (!this.isInBrackets) return;
        this.token = { text: "", from: offset + at + 1 };
      } else if (isStart && /\s/.test(character)) this.token.from = offset + at + 1;
      else this.token.text += character;
    }
  }

  readMark(character: string) {
    const top = this.frames.at(-1);
    if (character === "{" || character === "[") this.frames.push(makeFrame(character === "{" ? "map" : "list", IN_BRACKETS));
    else if (!top) return;
    else if (character === ":") top.key = unquoted(this.token.text);
    else {
      if (top.key) top.values.set(top.key, unquoted(this.token.text));
      if (character !== ",") this.frames.pop();
      else if (top.kind === "list") top.index += 1;
      else top.key = "";
    }
  }

  path(): PathPart[] {
    return this.frames.map((frame) => (frame.kind === "map" ? frame.key : frame.index));
  }
}

/** Finds what is written at a position; null in comments and in texts of several lines. */
export function spotAt(text: string, position: number): TextSpot | null {
  const start = text.lastIndexOf("\n", position - 1) + 1;
  const reader = new LineReader();
  let offset = 0;
  for (const line of text.slice(0, start).split("\n").slice(0, -1)) {
    reader.readLine(line, offset);
    offset += line.length + 1;
  }
  const line = text.slice(start, position);
  if (reader.isInBrackets) {
    reader.readBrackets(line, start);
    return reader.isInBrackets ? bracketSpot(reader) : null;
  }
  const indent = line.search(/\S/) < 0 ? line.length : line.search(/\S/);
  if (reader.scalarIndent !== null && indent > reader.scalarIndent) return null;
  reader.scalarIndent = null;
  if (/(^|\s)#/.test(line)) return null;
  return lineSpot(reader, text, line, start, indent);
}

function bracketSpot(reader: LineReader): TextSpot | null {
  const top = reader.frames.at(-1);
  if (!top || reader.quote) return null;
  const { text: partial, from } = reader.token;
  const above = reader.path().slice(0, -1);
  if (top.kind === "list") return { path: [...above, top.index], kind: "item", key: null, partial, from, siblings: new Map() };
  if (top.key) return { path: above, kind: "value", key: top.key, partial, from, siblings: top.values };
  return { path: above, kind: "key", key: null, partial, from, siblings: top.values };
}

function lineSpot(reader: LineReader, text: string, line: string, start: number, indent: number): TextSpot | null {
  const isItem = /^-(\s|$)/.test(line.slice(indent));
  const { column, rest } = reader.readDashes(line, indent);
  const key = KEY.exec(rest);
  if (key) {
    const value = reader.enterKey(key, column, rest);
    const partial = value.trimStart();
    if (/^[{[]/.test(partial)) {
      reader.readBrackets(partial, start + line.length - partial.length);
      return reader.isInBrackets ? bracketSpot(reader) : null;
    }
    const top = reader.frames.at(-1);
    if (!top || BLOCK_SCALAR.test(partial)) return null;
    return { path: reader.path().slice(0, -1), kind: "value", key: top.key, partial, from: start + line.length - partial.length, siblings: withLaterKeys(top.values, text, start, column) };
  }
  if (/^[{[]/.test(rest)) {
    reader.readBrackets(rest, start + column);
    return reader.isInBrackets ? bracketSpot(reader) : null;
  }
  if (!/^[\w-]*$/.test(rest)) return null;
  reader.closeTo(column, "map");
  const top = reader.frames.at(-1);
  const isIn = top?.kind === "map" && top.indent === column;
  const path = isIn ? reader.path().slice(0, -1) : reader.path();
  return { path, kind: isItem ? "item" : "key", key: null, partial: rest, from: start + column, siblings: withLaterKeys(isIn ? top.values : new Map(), text, start, column) };
}

/** Adds the keys of the same mapping that follow the line. */
function withLaterKeys(values: Map<string, string>, text: string, start: number, column: number): Map<string, string> {
  const all = new Map(values);
  for (const line of text.slice(start).split("\n").slice(1)) {
    const indent = line.search(/\S/);
    if (indent < 0 || line[indent] === "#" || indent > column) continue;
    const key = indent === column ? KEY.exec(line.slice(column)) : null;
    if (!key) break;
    all.set(unquoted(key[1] ?? ""), unquoted(withoutComment(line.slice(column + key[0].length))));
  }
  return all;
}
