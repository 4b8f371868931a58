// Drives a server with the official TypeScript client 2.x. Argument: a plan (JSON); standard output: a report (JSON).
//
// The client itself checks structured content against the advertised output schema; what it refuses is reported.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const plan = JSON.parse(process.argv[2]);
const modes = { auto: 'auto', legacy: 'legacy', modern: { pin: '2026-07-28' } };
const client = new Client({ name: 'typescript2', version: '1' }, { versionNegotiation: { mode: modes[plan.mode] } });
const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url))
  : new StdioClientTransport({ command: plan.command[0], args: plan.command.slice(1), env: { ...process.env } });
await client.connect(transport);

// Without a cursor this client walks every page itself.
const { tools } = await client.listTools();
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
const server = client.getServerVersion() ?? null;
const report = { protocol: client.getNegotiatedProtocolVersion(), server, tools, calls };
await client.close();
// A pipe takes a large report in parts.
process.stdout.write(JSON.stringify(report), () => process.exit(0));
