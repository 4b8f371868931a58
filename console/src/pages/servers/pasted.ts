// Reads what people paste for a server: its URL, its command line, or the configuration of a client.
import { isRecord } from "../../schema/exact";
import type { Json } from "../../api/shapes";

export interface NamedValue {
  name: string;
  value: string;
}

export interface PastedServer {
  /** What it would be called. */
  name: string;
  /** A configuration of a client names it so. */
  isNamed?: boolean;
  /** Empty where it is a command. */
  url: string;
  isSse: boolean;
  headers: NamedValue[];
  words: string[];
  environment: NamedValue[];
}

const NOTHING: PastedServer = { name: "", url: "", isSse: false, headers: [], words: [], environment: [] };

/** Returns the servers of a text, or why there is none. */
export function readServers(text: string): PastedServer[] | string {
  const trimmed = text.trim();
  if (trimmed === "") return [];
  if (/^[[{]/.test(trimmed)) return readConfiguration(trimmed);
  if (/^https?:\/\//i.test(trimmed)) {
    const url = parseUrl(trimmed);
    return url ? [{ ...NOTHING, name: nameOfHost(url.hostname), url: trimmed }] : "This is not a complete URL.";
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed)) return "A server is reached over http or https, or started by a command.";
  const words = splitWords(trimmed);
  return words ? [{ ...NOTHING, name: nameOfCommand(words), words }] : "A quotation mark is not closed.";
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

/** Clients call the object of their servers by one of these names. */
const SERVER_KEYS = ["mcpServers", "servers", "mcp_servers", "context_servers", "mcp"];

function readConfiguration(text: string): PastedServer[] | string {
  let root: Json;
  try {
    root = JSON.parse(text);
  } catch {
    return "This begins like JSON, but it is not. Paste the whole object.";
  }
  if (!isRecord(root)) return "This is JSON, but not a configuration of servers.";
  const whole = root;
  const held = SERVER_KEYS.map((key) => whole[key]).find(isRecord) ?? whole;
  const entries = readEntry("", held) ? ([["", held]] as [string, Json][]) : Object.entries(held);
  const servers = entries.map(([name, entry]) => readEntry(name, entry)).filter((server) => server !== null);
  return servers.length > 0 ? servers : "No entry has a `url` or a `command`.";
}

function readEntry(name: string, entry: Json): PastedServer | null {
  if (!isRecord(entry)) return null;
  const url = [entry.url, entry.serverUrl, entry.httpUrl].find((value) => typeof value === "string");
  const words = [entry.command, entry.args].flat().filter((word) => typeof word === "string");
  if (url === undefined && typeof entry.command !== "string" && !Array.isArray(entry.command)) return null;
  const server = {
    ...NOTHING,
    url: url ?? "",
    isSse: entry.type === "sse" || entry.transport === "sse",
    headers: readPairs(entry.headers),
    words: url === undefined ? words : [],
    environment: readPairs(entry.env),
  };
  const usual = url === undefined ? nameOfCommand(words) : nameOfHost(parseUrl(url)?.hostname ?? "");
  return { ...server, name: name === "" ? usual : serverName(name), isNamed: name !== "" };
}

function readPairs(value: Json | undefined): NamedValue[] {
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, text]) => (typeof text === "string" ? [{ name, value: text }] : []));
}

/** Splits a line into words, as a shell does without its expansions. */
function splitWords(line: string): string[] | null {
  const words: string[] = [];
  let rest = line;
  let open = "";
  let isOpen = false;
  while (rest !== "") {
    const part = /^(?:\s+|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\([^])|([^\s'"\\]+))/.exec(rest);
    if (!part) return null;
    rest = rest.slice(part[0].length);
    if (/^\s+$/.test(part[0])) {
      if (isOpen) words.push(open);
      [open, isOpen] = ["", false];
    } else {
      open += part[1] ?? part[2]?.replace(/\\(["\\$`])/g, "$1") ?? part[3] ?? part[4] ?? "";
      isOpen = true;
    }
  }
  return isOpen ? [...words, open] : words;
}

/** `mcp.github.com` becomes `github`. */
function nameOfHost(host: string): string {
  const labels = host.split(".");
  if (/^[0-9.]+$|:/.test(host)) return "server";
  const own = labels.filter((label) => !/^(www|api|mcp|app)$/.test(label));
  return serverName(own[0] ?? labels[0] ?? "");
}

/** `npx -y @scope/server-filesystem@1.2 /srv` becomes `filesystem`. */
function nameOfCommand(words: string[]): string {
  const isRunner = /^(npx|uvx|bunx|pipx|node|python3?|docker|uv|deno|run)$/;
  const word = words.find((one) => !one.startsWith("-") && !isRunner.test(one.split("/").at(-1) ?? "")) ?? words[0] ?? "";
  const last = word.split("/").at(-1) ?? "";
  return serverName(last.replace(/(?!^)@.*$/, "").replace(/\.[a-z]+$/, ""));
}

const NAME_MAX = 32;

function serverName(text: string): string {
  const plain = text.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const short = plain.replace(/^-?(mcp-)?(server-)?(mcp-)?/, "").replace(/(-mcp)?(-server)?(-mcp)?-?$/, "");
  const name = (short || plain).replace(/^[^a-z]+/, "").slice(0, NAME_MAX).replace(/-+$/, "");
  return name || "server";
}

/** The name that a server gives itself, as it can be used here; null if nothing of it is left. */
export function suggestName(own: string): string | null {
  const name = /[a-z]/i.test(own) ? serverName(own) : "server";
  return name === "server" ? null : name;
}

export const isServerName = (name: string) => /^[a-z][a-z0-9-]{0,31}$/.test(name);
