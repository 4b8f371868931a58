// Drives a server with the official TypeScript SDK 1.x. Argument: a plan (JSON); standard output: a report (JSON).
//
// This generation checks structured content against the advertised output schema on errors too.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { connect, report } from './driver.mjs';

const client = new Client({ name: 'typescript1', version: '1' });
const transport = await connect(client, StreamableHTTPClientTransport, StdioClientTransport);
await report(client, transport.protocolVersion ?? null, async () => {
  const tools = [];
  let pages = 0;
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
    pages += 1;
  } while (cursor !== undefined);
  return { pages, tools };
});
