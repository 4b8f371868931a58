// Signs in to a server with the official TypeScript client 2.x, as a hosted client does: the 401 leads to the metadata, that to
// the issuer, where the client registers itself, and a person (here: redirects with cookies) says yes. Argument: a plan (JSON);
// standard output: a report (JSON).
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const plan = JSON.parse(process.argv[2]);
const callback = 'http://127.0.0.1:9/callback';
const modes = { legacy: 'legacy', modern: { pin: '2026-07-28' } };

// Follows a sign-in until it leads back to the client.
async function signIn(url) {
  const cookies = new Map();
  for (let steps = 0; steps < 20; steps += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split(/=(.*)/s);
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (!location) throw new Error(`the sign-in stops with ${response.status}: ${await response.text()}`);
    url = new URL(location, url);
    if (url.href.startsWith(callback)) return url.searchParams;
  }
  throw new Error('the sign-in does not end');
}

const kept = { asked: [] };
const authProvider = {
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

// Does what needs a sign-in, signs in, and does it again.
async function signedIn(work) {
  try {
    return await work();
  } catch (error) {
    if (!kept.url) throw error;
    const answered = await signIn(kept.url);
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
const report = { tools: tools.map((tool) => tool.name), calls, asked: kept.asked };
await client.close();
process.stdout.write(JSON.stringify(report), () => process.exit(0));
