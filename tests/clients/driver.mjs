// What the drivers of both generations of the TypeScript SDK share: a plan (JSON) is the argument, a report (JSON) is written.
export const plan = JSON.parse(process.argv[2]);

export async function connect(client, Http, Stdio) {
  const [command, ...args] = plan.command ?? [];
  const headers = plan.key ? { Authorization: `Bearer ${plan.key}` } : plan.headers;
  const transport = plan.url ? new Http(new URL(plan.url), { requestInit: { headers } }) : new Stdio({ command, args, env: { ...process.env } });
  await client.connect(transport);
  return transport;
}

async function call(client, { tool, arguments: given }) {
  try {
    const result = await client.callTool({ name: tool, arguments: given });
    return {
      isError: result.isError ?? false,
      structured: result.structuredContent ?? null,
      text: result.content?.[0]?.text ?? null,
    };
  } catch (error) {
    return { refused: String(error), code: error.code ?? null };
  }
}

async function useTools(client, protocol, listTools) {
  const listed = await listTools();
  const calls = [];
  for (const one of plan.calls) calls.push(await call(client, one));
  return { protocol, server: client.getServerVersion() ?? null, ...listed, calls };
}

async function useItems(client) {
  const { prompts } = await client.listPrompts();
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  const prompt = await client.getPrompt({ name: plan.prompt, arguments: plan.arguments });
  const [read] = (await client.readResource({ uri: resources[0].uri })).contents;
  return {
    prompts: prompts.map((prompt) => prompt.name),
    resources: resources.map((resource) => resource.uri),
    templates: resourceTemplates.map((template) => template.uriTemplate),
    message: prompt.messages[0].content.text,
    read: { uri: read.uri, text: read.text },
  };
}

/** Runs the plan, which names a prompt or calls of tools. */
export async function report(client, protocol, listTools) {
  const report = plan.prompt ? await useItems(client) : await useTools(client, protocol, listTools);
  await client.close();
  // A pipe takes a large report in parts.
  process.stdout.write(JSON.stringify(report), () => process.exit(0));
}
