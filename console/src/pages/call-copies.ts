// One call as text to copy: for a shell, and for programs with the official clients.

export interface CopiedCall {
  name: string;
  text: string;
}

export interface CallToCopy {
  url: string;
  tool: string;
  /** JSON, as it was typed. */
  argumentsText: string;
  /** Whether callers need a key, which is in the variable `WEIR_KEY`. */
  needsKey: boolean;
}

const shellQuoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

export const copiedCalls = (call: CallToCopy): CopiedCall[] => [
  { name: "curl", text: asCurl(call) },
  { name: "weir call", text: asCommand(call) },
  { name: "Python", text: asPython(call) },
  { name: "TypeScript", text: asTypeScript(call) },
];

function asCurl({ url, tool, argumentsText, needsKey }: CallToCopy): string {
  const request = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${JSON.stringify(tool)},"arguments":${argumentsText}}}`;
  return [
    `curl ${url}`,
    `--header 'Content-Type: application/json'`,
    `--header 'Accept: application/json, text/event-stream'`,
    ...(needsKey ? [`--header "Authorization: Bearer $WEIR_KEY"`] : []),
    `--data ${shellQuoted(request)}`,
  ].join(" \\\n  ");
}

/** It sends the key of the variable `WEIR_KEY` on its own. */
function asCommand({ url, tool, argumentsText }: CallToCopy): string {
  return `weir call --url ${url} ${tool} --arguments ${shellQuoted(argumentsText)}`;
}

function asPython({ url, tool, argumentsText, needsKey }: CallToCopy): string {
  const headers = needsKey ? `, headers={"Authorization": "Bearer " + os.environ["WEIR_KEY"]}` : "";
  return `# pip install "mcp<2"
import asyncio, json${needsKey ? ", os" : ""}
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def main():
    async with streamablehttp_client(${JSON.stringify(url)}${headers}) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            result = await session.call_tool(${JSON.stringify(tool)}, json.loads(${JSON.stringify(argumentsText)}))
            print(result.content)

asyncio.run(main())
`;
}

function asTypeScript({ url, tool, argumentsText, needsKey }: CallToCopy): string {
  const options = needsKey ? ", { requestInit: { headers: { Authorization: `Bearer ${process.env.WEIR_KEY}` } } }" : "";
  return `// npm install @modelcontextprotocol/client
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(${JSON.stringify(url)})${options}));
const result = await client.callTool({ name: ${JSON.stringify(tool)}, arguments: ${argumentsText} });
console.log(result.content);
await client.close();
`;
}
