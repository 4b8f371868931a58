// Calls a tool that asks its caller, with the official TypeScript client 2.x. Argument: a plan (JSON); standard output: a report (JSON).
//
// The client answers through its own handler of `elicitation/create`; then once more by hand, with an altered state.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const plan = JSON.parse(process.argv[2]);
const modes = { auto: 'auto', legacy: 'legacy', modern: { pin: '2026-07-28' } };

async function connected(capabilities) {
  const options = { versionNegotiation: { mode: modes[plan.mode] }, capabilities };
  const client = new Client({ name: 'questions2', version: '1' }, options);
  const transport = plan.url
    ? new StreamableHTTPClientTransport(new URL(plan.url))
    : new StdioClientTransport({ command: plan.command[0], args: plan.command.slice(1), env: { ...process.env } });
  return { client, connect: () => client.connect(transport) };
}

async function outcome(called) {
  try {
    const result = await called();
    if (result.resultType === 'input_required') return { asks: result };
    return { isError: result.isError ?? false, structured: result.structuredContent ?? null };
  } catch (error) {
    return { refused: String(error), code: error.code ?? null };
  }
}

const { client, connect } = await connected({ elicitation: { form: {} } });
const asked = [];
let answer;
client.setRequestHandler('elicitation/create', async ({ params }) => {
  asked.push({ message: params.message, schema: params.requestedSchema });
  return answer;
});
await connect();
await client.listTools();

const answered = [];
for (answer of plan.answers) answered.push(await outcome(() => client.callTool({ name: plan.tool, arguments: plan.arguments })));

// By hand, and not through the handler: what the protocol would let a client do with the state.
const manual = {};
if (plan.mode !== 'legacy') {
  const params = { name: plan.tool, arguments: plan.arguments };
  const byHand = (more) =>
    outcome(() => client.request({ method: 'tools/call', params: { ...params, ...more } }, { allowInputRequired: true }));
  const { asks } = await byHand({});
  const [key] = Object.keys(asks.inputRequests);
  const inputResponses = { [key]: plan.answers[0] };
  const state = asks.requestState;
  const middle = state.length >> 1;
  const altered = state.slice(0, middle) + (state[middle] === 'A' ? 'B' : 'A') + state.slice(middle + 1);
  manual.altered = await byHand({ inputResponses, requestState: altered });
  manual.others = await byHand({ inputResponses, requestState: state, arguments: plan.other });
  manual.kept = await byHand({ inputResponses, requestState: state });
}

const mute = await connected({});
await mute.connect();
const unasked = await outcome(() => mute.client.callTool({ name: plan.tool, arguments: plan.arguments }));
console.log(JSON.stringify({ protocol: client.getNegotiatedProtocolVersion(), asked, answered, manual, unasked }));
await client.close();
await mute.client.close();
process.exit(0);
