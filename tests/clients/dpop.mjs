// A client whose tokens are bound to its key (DPoP). Argument: a plan (JSON) with the issuer, the resource, the algorithm of the
// key, and what each proof says; standard output: the token, one that is bound to no key, and the proofs (JSON).
import { createHash, randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

const { issuer, resource, algorithm, proofs } = JSON.parse(process.argv[2]);
const [own, other] = await Promise.all([1, 2].map(() => generateKeyPair(algorithm)));

async function prove({ header = {}, claims = {}, with_key: key = 'own' }) {
  const pair = key === 'own' ? own : other;
  const made = { jti: randomUUID(), iat: Math.floor(Date.now() / 1000) + (claims.later ?? 0), ...claims };
  delete made.later;
  const jwk = await exportJWK(pair.publicKey);
  return new SignJWT(made).setProtectedHeader({ alg: algorithm, typ: 'dpop+jwt', jwk, ...header }).sign(pair.privateKey);
}

async function token(headers) {
  const body = new URLSearchParams({
    grant_type: 'client_credentials', client_id: 'machine', client_secret: 'machine-secret-of-the-tests',
    resource, scope: 'tools',
  });
  const response = await fetch(`${issuer}/token`, { method: 'POST', headers, body });
  const answer = await response.json();
  if (!answer.access_token) throw new Error(JSON.stringify(answer));
  return answer;
}

const proof = await prove({ claims: { htm: 'POST', htu: `${issuer}/token` } });
const { access_token: bound, token_type: type } = await token({ DPoP: proof });
const { access_token: unbound } = await token({});
const ath = createHash('sha256').update(bound).digest('base64url');
const made = await Promise.all(proofs.map((plan) => prove({ ...plan, claims: { ath, ...plan.claims } })));
process.stdout.write(JSON.stringify({ bound, type, unbound, proofs: made }));
