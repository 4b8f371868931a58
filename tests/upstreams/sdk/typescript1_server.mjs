// The server of the matrix, with the TypeScript SDK 1.x: `stdio`, `http PORT` or `sse PORT`.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CreateMessageResultSchema, ElicitResultSchema, ListRootsResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const [way, port] = process.argv.slice(2);
const sessions = new Map();
let cancelled = 0;

function answer(structuredContent) {
  return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
}

function server() {
  const server = new McpServer({ name: "typescript1", version: "1" }, { capabilities: { logging: {} } });
  const tool = (name, inputSchema, outputSchema, run) => {
    const annotations = { readOnlyHint: true };
    server.registerTool(name, { description: `The tool ${name}.`, annotations, inputSchema, outputSchema }, run);
  };
  tool("echo", { text: z.string() }, { text: z.string() }, async ({ text }) => answer({ text }));
  tool("slow", { wait_ms: z.number().int() }, { steps: z.number().int() }, async ({ wait_ms }, extra) => {
    for (const progress of [1, 2, 3]) {
      const progressToken = extra._meta?.progressToken;
      if (progressToken === undefined) break;
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
    }
    await new Promise((done) => {
      const timer = setTimeout(done, wait_ms);
      extra.signal.addEventListener("abort", () => {
        cancelled += 1;
        clearTimeout(timer);
        done();
      });
    });
    return answer({ steps: 3 });
  });
  tool("cancelled", {}, { calls: z.number().int() }, async () => answer({ calls: cancelled }));
  tool("ask", {}, { action: z.string(), name: z.string().optional() }, async (_, extra) => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const params = { message: "Your name?", requestedSchema };
    const { action, content } = await extra.sendRequest({ method: "elicitation/create", params }, ElicitResultSchema);
    return answer({ action, name: content?.name });
  });
  tool("sample", {}, { text: z.string() }, async (_, extra) => {
    const messages = [{ role: "user", content: { type: "text", text: "Say hello." } }];
    const request = { method: "sampling/createMessage", params: { messages, maxTokens: 10 } };
    return answer({ text: (await extra.sendRequest(request, CreateMessageResultSchema)).content.text });
  });
  tool("roots", {}, { uris: z.array(z.string()) }, async (_, extra) => {
    const { roots } = await extra.sendRequest({ method: "roots/list" }, ListRootsResultSchema);
    return answer({ uris: roots.map((root) => root.uri) });
  });
  return server;
}

async function http(request, response) {
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (!transport) {
    const onsessioninitialized = (id) => sessions.set(id, transport);
    transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
    await server().connect(transport);
  }
  await transport.handleRequest(request, response);
}

async function sse(request, response) {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  if (pathname === "/messages") {
    const transport = sessions.get(searchParams.get("sessionId"));
    return transport ? transport.handlePostMessage(request, response) : response.writeHead(404).end();
  }
  const transport = new SSEServerTransport("/messages", response);
  sessions.set(transport.sessionId, transport);
  await server().connect(transport);
}

if (way === "stdio") {
  await server().connect(new StdioServerTransport());
} else {
  createServer(way === "http" ? http : sse).listen(Number(port), "127.0.0.1");
}
