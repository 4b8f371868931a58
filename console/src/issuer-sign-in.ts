// Signing in by an issuer of OpenID Connect: the browser goes there and comes back with an answer in the query of the page.
import { ProblemError, readProblem, unreachable } from "./api/problem";

const STORED = "weir.sign-in";

interface StoredSignIn {
  /** The secret of this tab, without which the answer is useless. */
  tab: string;
  /** Where the person was. */
  hash: string;
}

/** The issuer that signs people in; null where only admin keys do. */
export async function findIssuer(): Promise<string | null> {
  const response = await fetch("/v1/session/oidc").catch(() => null);
  return response?.ok ? ((await response.json()) as { issuer: string }).issuer : null;
}

/** Goes to the issuer. The page is left. */
export async function goToIssuer(): Promise<void> {
  const tab = [...crypto.getRandomValues(new Uint8Array(32))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const { url } = (await post("/v1/session/oidc", { tab })) as { url: string };
  sessionStorage.setItem(STORED, JSON.stringify({ tab, hash: location.hash } satisfies StoredSignIn));
  location.assign(url);
}

/** Whether a query is the answer of an issuer. */
export function isAnswer(query: string): boolean {
  const values = new URLSearchParams(query);
  return values.has("state") && (values.has("code") || values.has("error"));
}

/** Takes the answer out of the address and returns the link that it earns; null where the address has none. */
export async function takeIssuerAnswer(): Promise<string | null> {
  const query = location.search.slice(1);
  if (!isAnswer(query)) return null;
  const stored = readStored(sessionStorage.getItem(STORED));
  sessionStorage.removeItem(STORED);
  history.replaceState(null, "", location.pathname + (stored?.hash ?? ""));
  const { link } = (await post("/v1/session/oidc/answer", { query, tab: stored?.tab ?? "" })) as { link: string };
  return link;
}

export function readStored(text: string | null): StoredSignIn | null {
  if (text === null) return null;
  const { tab, hash } = JSON.parse(text) as StoredSignIn;
  return { tab, hash: /^#\/[^/]/.test(hash) || hash === "#/" ? hash : "" };
}

async function post(path: string, body: unknown): Promise<unknown> {
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }).catch(() => unreachable());
  if (!response.ok) throw new ProblemError(await readProblem(response));
  return response.json();
}
