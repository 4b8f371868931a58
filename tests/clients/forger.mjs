// An issuer on loopback that signs what it gets, so that tests have tokens of attackers with valid signatures. Arguments: the
// port; then, if there is one, the issuer that its metadata redirect to (`redirects URL`) or name (`names URL`).
//
// POST /sign { header, claims, by }: the token. `by` is `own`, `unpublished`, `public` (HS256 with the published key as the secret)
// or `none`. GET /counts: how often its metadata and keys were requested.
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { createServer } from 'node:http';

const [port, mode, other] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const [own, unpublished] = [1, 2].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
const published = { ...own.publicKey.export({ format: 'jwk' }), kid: 'own', alg: 'ES256', use: 'sig' };
const counts = { metadata: 0, jwks: 0 };
const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

function forge({ header, claims, by }) {
  const message = `${part(header)}.${part(claims)}`;
  const signed = (key) => sign('sha256', Buffer.from(message), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url');
  const secret = own.publicKey.export({ type: 'spki', format: 'pem' });
  const signatures = {
    own: () => signed(own.privateKey),
    unpublished: () => signed(unpublished.privateKey),
    public: () => createHmac('sha256', secret).update(message).digest('base64url'),
    none: () => '',
  };
  return `${message}.${signatures[by]()}`;
}

createServer(async (request, response) => {
  const answer = (body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  const { pathname } = new URL(request.url, issuer);
  if (pathname === '/counts') return answer(counts);
  if (pathname === '/sign') return response.end(forge(JSON.parse(Buffer.concat(await Array.fromAsync(request)))));
  if (pathname === '/jwks') {
    counts.jwks += 1;
    return answer({ keys: [published] });
  }
  counts.metadata += 1;
  if (mode === 'redirects') return response.writeHead(302, { location: `${other}${pathname}` }).end();
  if (pathname !== '/.well-known/openid-configuration') return response.writeHead(404).end();
  return answer({ issuer: mode === 'names' ? other : issuer, jwks_uri: `${issuer}/jwks` });
}).listen(Number(port), '127.0.0.1');
