// The server of the matrix, with the TypeScript SDK 2.x: `stdio` or `http PORT`, each in both eras.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Readable } from "node:stream";

import {
  createMcpHandler,
  inputRequired,
  inputResponse,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import * as sdk from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const [way, port] = process.argv.slice(2);
const sessions = new Map();
let cancelled = 0;

function answer(structuredContent) {
  return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
}

function server() {
  const server = new McpServer({ name: "typescript2", version: "1" }, { capabilities: { logging: {} } });
  const tool = (name, input, output, run) => {
    const [inputSchema, outputSchema] = [z.object(input), z.object(output)];
    const annotations = { readOnlyHint: true };
    server.registerTool(name, { description: `The tool ${name}.`, annotations, inputSchema, outputSchema }, run);
  };
  // Asks once: the SDK takes the question to clients of either era.
  const asking = (name, output, request, run) => {
    tool(name, {}, output, async (_, context) => {
      const response = inputResponse(context.mcpReq.inputResponses, "question");
      if (response.kind === "missing") return inputRequired({ inputRequests: { question: request() } });
      return answer(run(response));
    });
  };
  tool("echo", { text: z.string() }, { text: z.string() }, async ({ text }) => answer({ text }));
  tool("slow", { wait_ms: z.number().int() }, { steps: z.number().int() }, async ({ wait_ms }, { mcpReq }) => {
    for (const progress of [1, 2, 3]) {
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken === undefined) break;
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
    }
    await new Promise((done) => {
      const timer = setTimeout(done, wait_ms);
      mcpReq.signal.addEventListener("abort", () => {
        cancelled += 1;
        clearTimeout(timer);
        done();
      });
    });
    return answer({ steps: 3 });
  });
  tool("cancelled", {}, { calls: z.number().int() }, async () => answer({ calls: cancelled }));
  asking(
    "ask",
    { action: z.string(), name: z.string().optional() },
    () => inputRequired.elicit({ message: "Your name?", requestedSchema: z.object({ name: z.string() }) }),
    ({ action, content }) => ({ action, name: content?.name }),
  );
  asking(
    "sample",
    { text: z.string() },
    () => {
      const messages = [{ role: "user", content: { type: "text", text: "Say hello." } }];
      return inputRequired.createMessage({ messages, maxTokens: 10 });
    },
    ({ result }) => ({ text: result.content.text }),
  );
  asking("roots", { uris: z.array(z.string()) }, inputRequired.listRoots, ({ roots }) => ({
    uris: roots.map((root) => root.uri),
  }));
  return server;
}

const modern = createMcpHandler(server, { legacy: "reject" });

async function fetch(request) {
  if (!(await isLegacyRequest(request))) return modern.fetch(request);
  let transport = sessions.get(request.headers.get("mcp-session-id"));
  if (!transport) {
    const onsessioninitialized = (id) => sessions.set(id, transport);
    transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
    await server().connect(transport);
  }
  return transport.handleRequest(request);
}

// What `@modelcontextprotocol/node` does for `node:http`.
async function http(incoming, outgoing) {
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  const body = incoming.method === "POST" ? Readable.toWeb(incoming) : undefined;
  const { method, headers, url } = incoming;
  const init = { method, headers, body, duplex: "half", signal: gone.signal };
  const response = await fetch(new Request(`http://localhost${url}`, init));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  if (!response.body) return outgoing.end();
  Readable.fromWeb(response.body).on("error", () => outgoing.destroy()).pipe(outgoing);
}

// According to the matrix this SDK has no HTTP+SSE: add it here with an SDK that has it.
if (Object.keys(sdk).some((name) => name.startsWith("SSE"))) throw new Error("this SDK serves HTTP+SSE now");

if (way === "stdio") {
  serveStdio(server);
} else {
  createServer(http).listen(Number(port), "127.0.0.1");
}
