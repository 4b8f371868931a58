// Reads prompts and resources with the official TypeScript SDK 1.x. Argument: a plan (JSON); standard output: a report (JSON).
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const plan = JSON.parse(process.argv[2]);
const client = new Client({ name: 'items1', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(plan.url)));
const { prompts } = await client.listPrompts();
const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
const prompt = await client.getPrompt({ name: plan.prompt, arguments: plan.arguments });
const [read] = (await client.readResource({ uri: resources[0].uri })).contents;
console.log(
  JSON.stringify({
    prompts: prompts.map((prompt) => prompt.name),
    resources: resources.map((resource) => resource.uri),
    templates: resourceTemplates.map((template) => template.uriTemplate),
    message: prompt.messages[0].content.text,
    read: { uri: read.uri, text: read.text },
  }),
);
await client.close();
process.exit(0);
