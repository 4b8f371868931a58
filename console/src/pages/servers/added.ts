// The texts that add a server on the machine of the gateway: a command line, or a section of `weir.toml`.
import type { NamedValue, PastedServer } from "./pasted";

/** Words of names whose values are secrets. */
const SECRET = /auth|token|key|secret|password|cookie|credential/i;

const variableName = (text: string) => text.toUpperCase().replace(/[^A-Z0-9]+/g, "_");

export const hasReference = (value: string) => value.includes("${");

/** Returns whether a URL has a password, or a parameter that is named like a secret, in clear. */
export function isSecretUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { password, searchParams } = new URL(text);
  const values = [password, ...[...searchParams].flatMap(([name, value]) => (SECRET.test(name) ? [value] : []))];
  return values.some((value) => value !== "" && !hasReference(decodeURIComponent(value)));
}

/** `${TOKEN}` and `${input:token}` of clients become `${env:TOKEN}`. Null: the value has no reference. */
function clientReference(value: string): string | null {
  const pattern = /\$\{(?:(?:env|input):)?([A-Za-z_][\w-]*)\}/g;
  return pattern.test(value) ? value.replace(pattern, (_, name: string) => `\${env:${variableName(name)}}`) : null;
}

/** What is written down of a header: a reference where it is a secret, never the secret. */
export function writtenHeader(server: string, { name, value }: NamedValue): NamedValue {
  const reference = clientReference(value);
  if (reference !== null) return { name, value: reference };
  if (!SECRET.test(name)) return { name, value };
  const [scheme] = /^(Bearer|Basic|Token) /i.exec(value) ?? (/^authorization$/i.test(name) ? ["Bearer "] : [""]);
  const part = /^authorization$/i.test(name) ? "TOKEN" : variableName(name);
  return { name, value: `${scheme}\${env:${variableName(server)}_${part}}` };
}

/** Variables of clients that hold secrets are taken from the environment of the gateway. */
function writtenVariable({ name, value }: NamedValue): NamedValue {
  return { name, value: clientReference(value) ?? (SECRET.test(name) ? `\${env:${name}}` : value) };
}

/** Returns the variables that the gateway needs in its environment. */
export function neededVariables(server: PastedServer): string[] {
  const written = [...server.headers.map((header) => writtenHeader(server.name, header)), ...server.environment.map(writtenVariable)];
  const names = written.flatMap(({ value }) => [...value.matchAll(/\$\{env:(\w+)\}/g)].map(([, name]) => name ?? ""));
  return [...new Set(names)];
}

/** A word of a POSIX shell. */
const shellWord = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** `overlay` is the file that chooses among its tools, or empty. */
export function addLine(server: PastedServer, overlay = ""): string {
  const words = ["weir", "upstream", "add", server.name];
  if (server.url) words.push(server.url);
  for (const { name, value } of server.headers.map((header) => writtenHeader(server.name, header))) words.push("--header", `${name}: ${value}`);
  for (const { name, value } of server.environment.map(writtenVariable)) words.push("--env", value === `\${env:${name}}` ? name : `${name}=${value}`);
  if (overlay) words.push("--overlay", overlay);
  if (!server.url) words.push("--", ...server.words);
  return words.map(shellWord).join(" ");
}

/** One block for a shell: it writes the overlay, where there is one, and adds the server. */
export function addBlock(server: PastedServer, folder: string, file: string, overlay: string | null): string {
  const lines = folder === "" ? [] : [`cd ${shellWord(folder)}`];
  // The text ends with a line break, and no line of it is this delimiter.
  if (overlay !== null) lines.push(`cat > ${shellWord(file)} <<'EOF'\n${overlay.trimEnd()}\nEOF`);
  return [...lines, addLine(server, overlay === null ? "" : file)].join("\n");
}

/** A basic string of TOML has the escapes of JSON. */
const tomlText = (text: string) => JSON.stringify(text).replaceAll("\u007f", "\\u007f");
const tomlKey = (text: string) => (/^[\w-]+$/.test(text) ? text : tomlText(text));
const tomlTable = (values: NamedValue[]) => `{ ${values.map(({ name, value }) => `${tomlKey(name)} = ${tomlText(value)}`).join(", ")} }`;

export function addSection(server: PastedServer, overlay = ""): string {
  const lines = [`[upstreams.${server.name}]`];
  if (server.url) lines.push(`url = ${tomlText(server.url)}`);
  else lines.push(`command = [${server.words.map(tomlText).join(", ")}]`);
  if (server.isSse) lines.push('transport = "sse"');
  if (server.headers.length > 0) lines.push(`headers = ${tomlTable(server.headers.map((header) => writtenHeader(server.name, header)))}`);
  if (server.environment.length > 0) lines.push(`env = ${tomlTable(server.environment.map(writtenVariable))}`);
  if (overlay) lines.push(`overlay = ${tomlText(overlay)}`);
  return lines.join("\n");
}
