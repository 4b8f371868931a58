// The official TypeScript SDK.  typescript.mjs PORT
import { createServer } from 'node:http';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';
import * as z from 'zod/v4';

const port = Number(process.argv[2]);
const ticket = id => JSON.stringify({
  ticket_id: id, title: 'Printer on floor 3 is out of toner', status: 'open', priority: 'high',
  assignee: 'dana@example.com', tags: ['hardware', 'office'], description: 'x'.repeat(304),
});
const inputSchema = z.object({ ticket_id: z.string() });
const description = 'Look a ticket up by its id';

const build = () => {
  const server = new McpServer({ name: 'peer', version: '1.0.0' });
  server.registerTool('lookup_ticket', { description, inputSchema },
    async ({ ticket_id }) => ({ content: [{ type: 'text', text: ticket(ticket_id) }] }));
  return server;
};

const handle = toNodeHandler(createMcpHandler(build, { responseMode: 'json' }));
createServer((request, response) => {
  Promise.resolve(handle(request, response)).catch(error => { console.error(error); response.destroy(); });
}).listen(port, '127.0.0.1');
