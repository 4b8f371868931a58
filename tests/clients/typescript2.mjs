// Drives a server with the official TypeScript client 2.x. Argument: a plan (JSON); standard output: a report (JSON).
//
// The client itself checks structured content against the advertised output schema; what it refuses is reported.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { connect, plan, report } from './driver.mjs';

const modes = { auto: 'auto', legacy: 'legacy', modern: { pin: '2026-07-28' } };
const client = new Client({ name: 'typescript2', version: '1' }, { versionNegotiation: { mode: modes[plan.mode] } });
await connect(client, StreamableHTTPClientTransport, StdioClientTransport);
// Without a cursor this client walks every page itself.
await report(client, client.getNegotiatedProtocolVersion(), async () => ({ tools: (await client.listTools()).tools }));
