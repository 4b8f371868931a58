// How a value is written into the text of a contract: as the documentation writes it.
import { stringify, type Scalar } from "yaml";
import type { Json } from "../api/shapes";
import { isRecord } from "../schema/exact";

/** `flow` is inside `{}` or `[]`, `block` is anywhere else in YAML. */
export type Notation = "json" | "flow" | "block";

/** A longer map gets a line for each member. */
const LINE_MAX = 100;
/** Parts that are written in one line, whatever their length. */
const FLOW_PARTS = ["settings", "limits", "audit", "fields", "choices", "of"];

/** Texts that the gateway reads as numbers without quotes, and YAML 1.2 does not. */
const GATEWAY_NUMBER = /^[-+]?0[box]/i;

export function writeFlow(value: Json, notation: Notation, quote?: Scalar.Type | null): string {
  if (notation === "json") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => writeFlow(item, "flow")).join(", ")}]`;
  if (isRecord(value)) {
    const members = Object.entries(value).map(([name, member]) => `${writeScalar(name, "flow")}: ${writeFlow(member, "flow")}`);
    return members.length > 0 ? `{ ${members.join(", ")} }` : "{}";
  }
  return writeScalar(value, notation, quote);
}

function writeScalar(value: Json, notation: Notation, quote?: Scalar.Type | null): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const isQuoted = quote === "QUOTE_DOUBLE" || value.includes("\n") || /[.,:;!?]/.test(value) || GATEWAY_NUMBER.test(value);
  if (isQuoted) return JSON.stringify(value);
  const written = stringify([value], { collectionStyle: notation === "flow" ? "flow" : "block", lineWidth: 0, ...(quote === "QUOTE_SINGLE" && { defaultStringType: "QUOTE_SINGLE" as const }) });
  return notation === "flow" ? written.trim().slice(1, -1).trim() : written.slice(2).trimEnd();
}

/** A member of a map whose names begin at `column`. */
export function writePair(name: string, value: Json, notation: Notation, column: number): string {
  const key = name === "" ? "" : notation === "json" ? JSON.stringify(name) : writeScalar(name, "flow");
  if (notation !== "block") return `${key}: ${writeFlow(value, notation)}`;
  const indent = " ".repeat(column + 2);
  if (typeof value === "string" && value.trimEnd().includes("\n")) return `${key}: ${writeLines(value, indent)}`;
  if (Array.isArray(value) && value.some((item) => isRecord(item))) {
    return `${key}:${value.map((item) => `\n${indent}- ${writeItem(item, column + 4, name)}`).join("")}`;
  }
  if (isRecord(value) && Object.keys(value).length > 0 && !FLOW_PARTS.includes(name) && !isShort(value)) {
    return `${key}:\n${indent}${writeMembers(value, column + 2)}`;
  }
  return `${key}: ${writeFlow(value, "block")}`;
}

/** An item of a list whose content begins at `column`. */
export function writeItem(value: Json, column: number, name = ""): string {
  const isTool = isRecord(value) && "tool" in value;
  if (isRecord(value) && (isTool || (!FLOW_PARTS.includes(name) && !isShort(value) && !("type" in value)))) return writeMembers(value, column);
  return writeFlow(value, "block");
}

function writeMembers(value: { [name: string]: Json }, column: number): string {
  const members = Object.entries(value).map(([name, member]) => writePair(name, member, "block", column));
  return members.join(`\n${" ".repeat(column)}`);
}

const isShort = (value: { [name: string]: Json }) =>
  writeFlow(value, "flow").length <= LINE_MAX && !Object.values(value).some((member) => isRecord(member));

/** A text of several lines, which keeps its line breaks. */
function writeLines(text: string, indent: string): string {
  const trimmed = text.replace(/\n+$/, "");
  if (text.length - trimmed.length > 1 || /^[ \t]|[^\S\n]+\n|\r/.test(text)) return JSON.stringify(text);
  const mark = text === trimmed ? "|-" : "|";
  return `${mark}\n${trimmed.split("\n").map((line) => (line ? indent + line : "")).join("\n")}`;
}
