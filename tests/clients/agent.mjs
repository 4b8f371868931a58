// Runs an agent of a framework on Node to its end, as `agent.py` does: arguments and report are the same.
const plan = JSON.parse(process.argv[3]);
const question = 'Do what the model says.';
const turnsMax = 20;

async function ai_sdk() {
  const { generateText, stepCountIs } = await import('ai');
  const { createMCPClient } = await import('@ai-sdk/mcp');
  const settings = { baseURL: plan.base, apiKey: 'none' };
  const models = {
    anthropic: async () => (await import('@ai-sdk/anthropic')).createAnthropic(settings)('claude-sonnet-4-5'),
    gemini: async () => (await import('@ai-sdk/google')).createGoogleGenerativeAI(settings)('gemini-2.5-flash'),
    openai: async () => (await import('@ai-sdk/openai')).createOpenAI(settings)('gpt-5-mini'),
  };
  const client = await createMCPClient({ transport: { type: 'http', url: plan.url } });
  const model = await models[plan.vendor]();
  const tools = await client.tools();
  const done = await generateText({ model, tools, prompt: question, stopWhen: stepCountIs(turnsMax), maxRetries: 0 });
  await client.close();
  return done.text;
}

const frameworks = { ai_sdk };
process.stdout.write(`${JSON.stringify({ answer: await frameworks[process.argv[2]]() })}\n`, () => process.exit(0));
