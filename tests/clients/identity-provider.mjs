// An identity provider on loopback, by oidc-provider. Arguments: the port, the algorithm of access tokens, and the address that
// the client `console` comes back to, if there is one.
//
// Everyone who signs in is `ann` and consents to everything. Programs register themselves, are `known` without a secret, have the
// metadata document below, or are `machine`, `robot` or `program` with the secret `machine-secret-of-the-tests`. Every URL of this
// machine is a resource.
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const [port, algorithm, back] = process.argv.slice(2);
const made = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};
const keys = Object.entries(made).map(([alg, make]) => ({
  ...make().privateKey.export({ format: 'jwk' }), alg, kid: alg, use: 'sig',
}));
const scope = 'tools tools:write';
// Where clients are sent back to: their ports are not compared, as for all native programs.
const redirects = ['127.0.0.1', 'localhost'].flatMap((host) =>
  ['/callback', '/oauth/callback'].map((path) => `http://${host}:9${path}`));
const native = {
  application_type: 'native',
  redirect_uris: redirects,
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};
const document = 'https://client.test/weir-tests.json';
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys },
  scopes: ['openid', 'offline_access', ...scope.split(' ')],
  clients: [{ client_id: 'known', ...native }, ...['machine', 'robot', 'program'].map((client_id) => ({
    client_id,
    client_secret: 'machine-secret-of-the-tests',
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    token_endpoint_auth_method: client_id === 'program' ? 'client_secret_basic' : 'client_secret_post',
  })), ...(back ? [{ client_id: 'console', client_secret: 'console-secret-of-the-tests', redirect_uris: [back] }] : [])],
  claims: { openid: ['sub', 'groups'] },
  conformIdTokenClaims: false,
  enabledJWA: { dPoPSigningAlgValues: ['ES256', 'EdDSA', 'RS256', 'PS256'] },
  features: {
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope, audience: resource, accessTokenTTL: 600, accessTokenFormat: 'jwt', jwt: { sign: { alg: algorithm } },
      }),
    },
  },
  // The document's host name does not belong to this machine.
  fetch: async (url, options) => String(url) === document
    ? Response.json({ client_id: document, client_name: 'tests', ...native })
    : fetch(url, options),
  extraTokenClaims: () => ({ groups: ['airports'] }),
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: ['airports', 'writers'] }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
});
// A client may ask for more scopes than it registered with: the official one registers with those of the first challenge.
provider.use(async (context, next) => {
  if (context.path === '/reg' && context.method === 'POST') {
    const pieces = await Array.fromAsync(context.req);
    const { scope: _, ...metadata } = JSON.parse(Buffer.concat(pieces));
    context.req.body = metadata;
  }
  return next();
});
provider.use(async (context, next) => {
  if (!context.path.startsWith('/interaction/')) return next();
  const { params, prompt, session, grantId } = await provider.interactionDetails(context.req, context.res);
  if (prompt.name === 'login') {
    return provider.interactionFinished(context.req, context.res, { login: { accountId: 'ann' } });
  }
  const accountId = session.accountId;
  const grant = (grantId && await provider.Grant.find(grantId)) || new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(`openid offline_access ${scope}`);
  for (const resource of [params.resource].flat().filter(Boolean)) grant.addResourceScope(resource, scope);
  return provider.interactionFinished(context.req, context.res, { consent: { grantId: await grant.save() } });
});
provider.listen(Number(port), '127.0.0.1');
