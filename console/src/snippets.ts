// What connects a client to this gateway.
import type { Configuration } from "./api/queries";

export interface Snippet {
  client: string;
  text: string;
}

/** The address that clients use: the public one, or that of the listener. */
export function mcpAddress(configuration: Pick<Configuration, "http">, contract?: string): string {
  const { public_url: open, listen } = configuration.http;
  const base = open ? open.replace(/\/+$/, "") : `http://${listen.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, "127.0.0.1")}`;
  return `${base}/mcp${contract ? `/${contract}` : ""}`;
}

export function snippets(url: string, key: string | null): Snippet[] {
  const header = key && `Authorization: Bearer ${key}`;
  const headers = key ? { headers: { Authorization: `Bearer ${key}` } } : {};
  const json = (value: unknown) => JSON.stringify(value, null, 2);
  const request = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  return [
    { client: "Claude Code", text: `claude mcp add --transport http weir ${url}${header ? ` \\\n  --header "${header}"` : ""}` },
    { client: "Cursor", text: json({ mcpServers: { weir: { url, ...headers } } }) },
    { client: "VS Code", text: json({ servers: { weir: { type: "http", url, ...headers } } }) },
    {
      client: "curl",
      text: `curl ${url} \\\n  --header "Content-Type: application/json" \\\n  --header "Accept: application/json, text/event-stream" \\\n${
        header ? `  --header "${header}" \\\n` : ""
      }  --data '${JSON.stringify(request)}'`,
    },
  ];
}
