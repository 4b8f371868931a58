// Signs in to a server with the official TypeScript client 2.x, as a hosted client does: the 401 leads to the metadata, that to
// the issuer, which knows the client as the plan says, and a person (here: redirects with cookies) says yes. Argument: a plan
// (JSON); standard output: a report (JSON).
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { signIn } from './browser.mjs';

const plan = JSON.parse(process.argv[2]);
const callback = 'http://127.0.0.1:9/callback';
const modes = { legacy: 'legacy', modern: { pin: '2026-07-28' } };

const kept = { asked: [] };
if (plan.way === 'known') kept.client = { client_id: 'known', issuer: plan.issuer };
const person = {
  clientMetadataUrl: plan.way === 'document' ? plan.document : undefined,
  redirectUrl: callback,
  clientMetadata: {
    client_name: 'test',
    application_type: 'native',
    redirect_uris: [callback],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  redirectToAuthorization: (url) => { kept.url = url; kept.asked.push(url.searchParams.get('scope')); },
  saveDiscoveryState: (state) => { kept.discovery = state; },
  discoveryState: () => kept.discovery,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
};
const authProvider = plan.way === 'machine'
  ? new ClientCredentialsProvider({ clientId: 'program', clientSecret: plan.secret, scope: plan.scope, expectedIssuer: plan.issuer })
  : person;

// Tries what needs a sign-in, signs in, and tries again.
async function signedIn(work) {
  try {
    return await work();
  } catch (error) {
    if (!kept.url) throw error;
    const answered = (await signIn(kept.url, callback)).searchParams;
    kept.url = undefined;
    await transport.finishAuth(answered);
    return work();
  }
}

let client;
let transport;
const connect = async () => {
  client = new Client({ name: 'oauth2', version: '1' }, { versionNegotiation: { mode: modes[plan.mode] } });
  transport = new StreamableHTTPClientTransport(new URL(plan.url), { authProvider });
  await client.connect(transport);
};
await signedIn(connect);
const { tools } = await client.listTools();
const calls = [];
for (const { tool, arguments: given } of plan.calls) {
  const result = await signedIn(() => client.callTool({ name: tool, arguments: given }));
  calls.push({ isError: result.isError ?? false, structured: result.structuredContent ?? null });
}
const report = { tools: tools.map((tool) => tool.name), calls, asked: kept.asked, client: kept.client?.client_id ?? null };
await client.close();
process.stdout.write(JSON.stringify(report), () => process.exit(0));
