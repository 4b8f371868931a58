// The official TypeScript SDK.  typescript.mjs PORT json|session TOOLS
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import * as z from 'zod/v4';

const [port, mode, tools] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
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
  for (let number = 1; number < tools; number++)
    server.registerTool(`lookup_ticket_${String(number).padStart(5, '0')}`, { description, inputSchema },
      async () => ({ content: [{ type: 'text', text: 'x' }] }));
  return server;
};

let handle;
if (mode === 'json') {
  handle = toNodeHandler(createMcpHandler(build, { responseMode: 'json' }));
} else {
  const sessions = new Map();
  handle = async (request, response) => {
    const id = request.headers['mcp-session-id'];
    if (id && sessions.has(id)) return sessions.get(id).handleRequest(request, response);
    if (id) { response.writeHead(404); return response.end(); }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => { sessions.set(id, transport); },
    });
    await build().connect(transport);
    return transport.handleRequest(request, response);
  };
}
createServer((request, response) => {
  Promise.resolve(handle(request, response)).catch(error => { console.error(error); response.destroy(); });
}).listen(port, '127.0.0.1');
