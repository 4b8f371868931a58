// What connects a client to this gateway.
import type { Configuration } from "./api/queries";

export interface Snippet {
  client: string;
  /** The file for the text, or where it is run. */
  place: string;
  /** What to do after that. */
  after: string;
  text: string;
}

/** The address that clients use: the public one, or that of the listener. */
export function mcpAddress(configuration: Pick<Configuration, "http">, contract?: string): string {
  const { public_url: open, listen } = configuration.http;
  const base = open ? open.replace(/\/+$/, "") : `http://${listen.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, "127.0.0.1")}`;
  return `${base}/mcp${contract ? `/${contract}` : ""}`;
}

const DESKTOP = {
  place:
    "Put it into claude_desktop_config.json: Settings, Developer, Edit Config opens it. It is in ~/Library/Application Support/Claude on macOS, and in %APPDATA%\\Claude on Windows.",
  after: "Then quit Claude Desktop and start it again. It starts mcp-remote for this, which needs Node.js.",
};

/** Claude Desktop starts servers itself: mcp-remote is a server that passes everything on to a URL. */
function bridge(url: string, key: string | null) {
  // A space within an argument is lost on Windows, and a variable keeps it.
  const header = key ? ["--header", "Authorization:${WEIR_AUTHORIZATION}"] : [];
  const isPlain = url.startsWith("http:") && !/^http:\/\/(127\.0\.0\.1|localhost|\[::1\])[:/]/.test(url);
  const args = ["-y", "mcp-remote", url, ...header, ...(isPlain ? ["--allow-http"] : [])];
  return { command: "npx", args, ...(key && { env: { WEIR_AUTHORIZATION: `Bearer ${key}` } }) };
}

export function snippets(url: string, key: string | null): Snippet[] {
  const header = key && `Authorization: Bearer ${key}`;
  const headers = key ? { headers: { Authorization: `Bearer ${key}` } } : {};
  const json = (value: unknown) => JSON.stringify(value, null, 2);
  const request = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  return [
    { client: "Claude Code", place: "Run it in a terminal, in the folder of your project.", after: "Start Claude Code there; /mcp shows whether it is connected.", text: `claude mcp add --transport http weir ${url}${header ? ` \\\n  --header "${header}"` : ""}` },
    { client: "Claude Desktop", ...DESKTOP, text: json({ mcpServers: { weir: bridge(url, key) } }) },
    { client: "Cursor", place: "Put it into .cursor/mcp.json of your project, or ~/.cursor/mcp.json for all projects.", after: "Then restart Cursor.", text: json({ mcpServers: { weir: { url, ...headers } } }) },
    { client: "VS Code", place: "Put it into .vscode/mcp.json of your project.", after: "Then press Start above the entry in that file.", text: json({ servers: { weir: { type: "http", url, ...headers } } }) },
    {
      client: "curl",
      place: "Run it in a terminal.",
      after: "It answers with the list of tools.",
      text: `curl ${url} \\\n  --header "Content-Type: application/json" \\\n  --header "Accept: application/json, text/event-stream" \\\n${
        header ? `  --header "${header}" \\\n` : ""
      }  --data '${JSON.stringify(request)}'`,
    },
  ];
}

/** What is entered at the clients that their vendors host. They take no key: people sign in at an issuer. */
export function hostedSnippets(url: string, issuers: string[]): Snippet[] {
  const lacking = !url.startsWith("https://")
    ? "It reaches https addresses on the internet only: set public_url of [http] first."
    : issuers.length === 0
      ? "It takes no keys: add an issuer to [[identity.issuers]] first."
      : null;
  const after = (redirects: string) =>
    lacking ??
    `Leave the client's id and secret empty where the issuer lets clients register themselves or accepts their metadata documents. Otherwise register one there with ${redirects} and the scopes tools and tools:write, and enter its id. Then connect, and sign in at ${issuers.join(" or ")}.`;
  return [
    {
      client: "Claude (web)",
      place: "In Claude, open Settings, Connectors, Add custom connector, and enter this as the remote MCP server URL.",
      after: after("the redirect URIs https://claude.ai/api/mcp/auth_callback and https://claude.com/api/mcp/auth_callback"),
      text: url,
    },
    {
      client: "ChatGPT",
      place: "In ChatGPT, open Settings, Apps & Connectors, Advanced settings, and switch on Developer mode. Then press Create, enter this as the MCP server URL, and choose OAuth.",
      after: after("the redirect URI that the dialog shows"),
      text: url,
    },
  ];
}
