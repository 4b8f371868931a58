// JSON as lines, each with the place of the value that it is of.
import type { Json } from "../api/shapes";
import { isRecord } from "./exact";
import { pointerPart } from "./model";

export interface JsonLine {
  text: string;
  pointer: string;
}

/** The lines of `JSON.stringify(value, null, 2)`, except that short lists of plain values are one line. */
export function schemaLines(value: Json): JsonLine[] {
  const lines: JsonLine[] = [];
  write(value, "", "", "", "", lines);
  return lines;
}

const LIST_MAX = 72;

function write(value: Json, pointer: string, indent: string, before: string, after: string, lines: JsonLine[]) {
  const put = (text: string) => lines.push({ text: indent + text, pointer });
  const isList = Array.isArray(value);
  const isPlain = isList && value.every((item) => !Array.isArray(item) && !isRecord(item));
  const inLine = isPlain ? `[${value.map((item) => JSON.stringify(item)).join(", ")}]` : JSON.stringify(value);
  const members: [string | number, Json][] = isList ? value.map((item, index) => [index, item]) : isRecord(value) ? Object.entries(value) : [];
  if (members.length === 0 || (isPlain && inLine.length <= LIST_MAX)) {
    put(before + inLine + after);
    return;
  }
  put(before + (isList ? "[" : "{"));
  members.forEach(([name, member], index) => {
    const comma = index < members.length - 1 ? "," : "";
    write(member, pointer + pointerPart(name), `${indent}  `, isList ? "" : `${JSON.stringify(name)}: `, comma, lines);
  });
  put((isList ? "]" : "}") + after);
}
