// Drives a server through an agent framework on Node, as its agents would. Arguments: the framework and a plan (JSON);
// standard output: a report (JSON), as `frameworks.py` writes it. `closed_ms`: how long the framework took to close.
const plan = JSON.parse(process.argv[3]);
const headers = plan.key ? { Authorization: `Bearer ${plan.key}` } : {};
const env = { ...process.env, WEIR_KEY: plan.key ?? '' };
const [command, ...args] = plan.command ?? [];

/** The text of what a framework hands to a model. */
function text(result) {
  if (typeof result === 'string') return result;
  if (Array.isArray(result)) return result.map(text).join('\n');
  const value = result?.text ?? result?.content ?? result?.value ?? result?.output;
  return value === undefined ? JSON.stringify(result) : text(value);
}

/** What an object of the framework reports about an error, besides its text. */
function mark(result) {
  return result?.isError === true ? 'isError=true' : null;
}

/** `call`: an async function of a tool's name and its arguments; `close`: ends the connection. */
async function report(tools, call, close) {
  const calls = [];
  for (const one of plan.calls) {
    try {
      const answer = await call(one.tool, one.arguments);
      calls.push({ text: text(answer), marked: mark(answer) });
    } catch (error) {
      calls.push({ text: String(error?.message ?? error), raised: error?.name ?? 'Error' });
    }
  }
  const began = Date.now();
  await close();
  return { tools, calls, closed_ms: Date.now() - began };
}

async function ai_sdk() {
  const { createMCPClient } = await import('@ai-sdk/mcp');
  const { Experimental_StdioMCPTransport } = await import('@ai-sdk/mcp/mcp-stdio');
  const transport = plan.url
    ? { type: 'http', url: plan.url, headers }
    : new Experimental_StdioMCPTransport({ command, args, env });
  const client = await createMCPClient({ transport });
  const tools = await client.tools();
  const call = async (tool, input) => {
    const output = await tools[tool].execute(input, { toolCallId: '1', messages: [] });
    const shown = tools[tool].toModelOutput ? await tools[tool].toModelOutput({ toolCallId: '1', input, output }) : output;
    return { ...shown, isError: output.isError };
  };
  return report(Object.keys(tools), call, () => client.close());
}

async function langchain_js() {
  const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
  const server = plan.url ? { transport: 'http', url: plan.url, headers } : { transport: 'stdio', command, args, env };
  const client = new MultiServerMCPClient({ mcpServers: { weir: server } });
  const tools = Object.fromEntries((await client.getTools()).map((tool) => [tool.name, tool]));
  const call = (tool, input) => tools[tool].invoke(input);
  return report(Object.keys(tools), call, () => client.close());
}

async function mcporter() {
  const { createRuntime } = await import('mcporter');
  const where = plan.url ? { kind: 'http', url: new URL(plan.url), headers } : { kind: 'stdio', command, args, cwd: process.cwd() };
  const runtime = await createRuntime({ servers: [{ name: 'weir', command: where, env: { WEIR_KEY: env.WEIR_KEY } }] });
  const tools = (await runtime.listTools('weir')).map((tool) => tool.name);
  const call = (tool, input) => runtime.callTool('weir', tool, { args: input });
  return report(tools, call, () => runtime.close());
}

async function mastra() {
  const { MCPClient } = await import('@mastra/mcp');
  const server = plan.url ? { url: new URL(plan.url), requestInit: { headers } } : { command, args, env };
  const client = new MCPClient({ servers: { weir: server } });
  const tools = await client.listTools();
  const named = Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name.replace(/^weir_/, ''), tool]));
  const call = (tool, input) => named[tool].execute(input, {});
  return report(Object.keys(named), call, () => client.disconnect());
}

async function openai_agents_js() {
  const { MCPServerStdio, MCPServerStreamableHttp, getAllMcpTools, RunContext } = await import('@openai/agents');
  const server = plan.url
    ? new MCPServerStreamableHttp({ url: plan.url, requestInit: { headers } })
    : new MCPServerStdio({ command, args, env });
  await server.connect();
  const listed = await getAllMcpTools([server]);
  const tools = Object.fromEntries(listed.map((tool) => [tool.name, tool]));
  const call = (tool, input) => tools[tool].invoke(new RunContext(), JSON.stringify(input));
  return report(Object.keys(tools), call, () => server.close());
}

async function mcp_use_js() {
  const { MCPClient } = await import('mcp-use');
  const server = plan.url ? { url: plan.url, headers } : { command, args, env };
  const client = new MCPClient({ mcpServers: { weir: server } });
  const session = await client.createSession('weir');
  const tools = (await session.listTools()).map((tool) => tool.name);
  const call = (tool, input) => session.callTool(tool, input);
  return report(tools, call, () => client.closeAllSessions());
}

const frameworks = { ai_sdk, langchain_js, mcporter, mastra, openai_agents_js, mcp_use_js };
let done;
try {
  done = await frameworks[process.argv[2]]();
} catch (error) {
  done = { refused: `${error?.name}: ${error?.message ?? error}` };
}
process.stdout.write(`${JSON.stringify(done)}\n`, () => process.exit(0));
