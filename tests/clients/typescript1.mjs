// Drives a server with the official TypeScript SDK 1.x. Argument: a plan (JSON); standard output: a report (JSON).
//
// This generation checks structured content against the advertised output schema on errors too.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const plan = JSON.parse(process.argv[2]);
const client = new Client({ name: 'typescript1', version: '1' });
const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url))
  : new StdioClientTransport({ command: plan.command[0], args: plan.command.slice(1), env: { ...process.env } });
await client.connect(transport);

const tools = [];
let pages = 0;
let cursor;
do {
  const page = await client.listTools(cursor === undefined ? {} : { cursor });
  tools.push(...page.tools);
  cursor = page.nextCursor;
  pages += 1;
} while (cursor !== undefined);

const calls = [];
for (const { tool, arguments: given } of plan.calls) {
  try {
    const result = await client.callTool({ name: tool, arguments: given });
    calls.push({
      isError: result.isError ?? false,
      structured: result.structuredContent ?? null,
      text: result.content?.[0]?.text ?? null,
    });
  } catch (error) {
    calls.push({ refused: String(error), code: error.code ?? null });
  }
}
const report = { protocol: transport.protocolVersion ?? null, server: client.getServerVersion() ?? null, pages, tools, calls };
await client.close();
// A pipe takes a large report in parts.
process.stdout.write(JSON.stringify(report), () => process.exit(0));
