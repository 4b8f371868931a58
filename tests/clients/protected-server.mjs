// An MCP server that accepts only the access tokens of people, and its issuer, by oidc-provider, both on loopback.
// Arguments: the port of the server, that of the issuer, the era that the server speaks (legacy, modern), the seconds that
// an access token lasts, and the port of the gateway if the issuer is to know it by its metadata document: that of
// `https://weir.test`, which is reached there.
//
// A browser names the user who signs in by the header `x-user`. Tests ask at the paths below `/control` of the server what it
// was sent, and tell the issuer what to do.
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const [port, issuerPort, era, seconds, gateway] = process.argv.slice(2);
const base = `http://127.0.0.1:${port}`;
const issuer = `http://127.0.0.1:${issuerPort}`;
const resource = `${base}/mcp`;
const scope = 'notes';
// All scopes; a call may need more than the first.
const every = 'notes notes:write notes:share';
let needs = scope;
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
// What the issuer issued, what the server was sent, and what is to fail.
const issued = { access: new Set(), refresh: new Set(), grants: new Map() };
const calls = [];
const bearers = new Set();
const clients = new Set();
const trouble = { lose: 0, hold: 0, answer: 0, register: 0 };
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
let renewals = 0;

const provider = new Provider(issuer, {
  jwks: { keys: [{ ...key, alg: 'RS256', use: 'sig', kid: 'one' }] },
  scopes: ['openid', 'offline_access', ...every.split(' ')],
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    clientIdMetadataDocument: { enabled: gateway !== undefined, ack: 'draft-02' },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, name) => {
        if (name !== resource) throw new Error('unknown resource');
        return { scope: every, audience: name, accessTokenTTL: Number(seconds), accessTokenFormat: 'opaque' };
      },
    },
  },
  // The gateway's name does not resolve here, and the dispatcher refuses addresses of this machine.
  fetch: (url, { dispatcher: _, ...options }) =>
    fetch(String(url).replace('https://weir.test', `http://127.0.0.1:${gateway}`), options),
  issueRefreshToken: async () => true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
});
provider.on('grant.success', (context) => {
  const { access_token: access, refresh_token: refresh } = context.body;
  if (access) issued.access.add(access);
  if (refresh) issued.refresh.add(refresh);
  clients.add(context.oidc.client.clientId);
  const { grantId, accountId } = context.oidc.entities.AccessToken;
  issued.grants.set(accountId, grantId);
});
// The issuer's change is kept, but its answer comes late.
provider.use(async (context, next) => {
  await next();
  if (context.path === '/reg') await pause(trouble.register);
});
provider.use(async (context, next) => {
  if (context.path !== '/token' || context.method !== 'POST') return next();
  const pieces = await Array.fromAsync(context.req);
  const text = Buffer.concat(pieces).toString();
  context.req.body = Object.fromEntries(new URLSearchParams(text));
  if (context.req.body.grant_type === 'refresh_token') {
    renewals += 1;
    if (trouble.lose > 0) {
      trouble.lose -= 1;
      context.respond = false;
      return context.req.socket.destroy();
    }
    await pause(trouble.hold);
  }
  await next();
  if (context.req.body.grant_type === 'authorization_code') await pause(trouble.answer);
});
provider.use(async (context, next) => {
  if (!context.path.startsWith('/interaction/')) return next();
  const { params, prompt, session, grantId } = await provider.interactionDetails(context.req, context.res);
  if (prompt.name === 'login') {
    const accountId = context.get('x-user');
    return provider.interactionFinished(context.req, context.res, { login: { accountId } });
  }
  const accountId = session.accountId;
  const grant = (grantId && await provider.Grant.find(grantId)) || new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(`openid offline_access ${every}`);
  grant.addResourceScope(resource, every);
  return provider.interactionFinished(context.req, context.res, { consent: { grantId: await grant.save() } });
});
provider.listen(Number(issuerPort), '127.0.0.1');

const json = (response, status, body, headers = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(body === undefined ? '' : JSON.stringify(body));
};
const sessions = new Set();
const tools = [
  { name: 'whoami', description: 'Says who calls.', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  { name: 'sign', description: 'Signs as who calls.', inputSchema: { type: 'object' } },
];

async function control(path, query, response) {
  if (path === '/control/issued') return json(response, 200, { access: [...issued.access], refresh: [...issued.refresh], clients: [...clients] });
  if (path === '/control/calls') return json(response, 200, { calls, bearers: [...bearers], renewals });
  if (path === '/control/revoke') {
    const grantId = issued.grants.get(query.get('user'));
    for (const kind of ['AccessToken', 'RefreshToken']) await provider[kind].revokeByGrantId(grantId);
    await provider.Grant.adapter.destroy(grantId);
  }
  if (path === '/control/needs') needs = query.get('scope');
  for (const name of Object.keys(trouble)) if (query.has(name)) trouble[name] = Number(query.get(name));
  return json(response, 200, {});
}

createServer(async (request, response) => {
  const url = new URL(request.url, base);
  if (url.pathname.startsWith('/control/')) return control(url.pathname, url.searchParams, response);
  const place = '/.well-known/oauth-protected-resource/mcp';
  if (url.pathname === place) return json(response, 200, { resource, authorization_servers: [issuer], scopes_supported: [scope] });
  if (url.pathname !== '/mcp') return json(response, 404, {});
  const bearer = (request.headers.authorization ?? '').replace(/^Bearer /, '');
  if (bearer) bearers.add(bearer);
  const token = bearer && await provider.AccessToken.find(bearer);
  if (!token || token.isExpired) {
    return json(response, 401, {}, { 'www-authenticate': `Bearer resource_metadata="${base}${place}", scope="${scope}"` });
  }
  if (request.method !== 'POST') return json(response, 405, {});
  const { id, method, params } = JSON.parse(Buffer.concat(await Array.fromAsync(request)));
  const user = token.accountId;
  const session = request.headers['mcp-session-id'];
  const answer = (result, headers) => json(response, 200, { jsonrpc: '2.0', id, result }, headers);
  const refuse = (status, code) => json(response, status, { jsonrpc: '2.0', id, error: { code, message: 'no' } });
  if (method === 'server/discover') {
    return era === 'modern' ? answer({ resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }) : refuse(404, -32601);
  }
  if (method === 'initialize') {
    if (era === 'modern') return refuse(400, -32022);
    const opened = `${sessions.size}-${user}`;
    sessions.add(opened);
    return answer({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
      { 'mcp-session-id': opened });
  }
  if (era === 'legacy' && !sessions.has(session)) return refuse(404, -32001);
  if (id === undefined) return json(response, 202);
  if (method === 'tools/list') return answer({ resultType: 'complete', tools });
  if (method !== 'tools/call') return refuse(404, -32601);
  if (!token.scope?.split(' ').includes(needs)) {
    return json(response, 403, {}, { 'www-authenticate': `Bearer error="insufficient_scope", scope="${needs}"` });
  }
  calls.push({ user, session: session ?? null, tool: params.name, params: Object.keys(params), scope: token.scope });
  // A server that repeats the token does not get it into an answer.
  return answer({ resultType: 'complete', content: [{ type: 'text', text: `you are ${user}, by ${bearer}` }] });
}).listen(Number(port), '127.0.0.1');
