// Who is signed in. All that knows how a session begins, is kept and ends is in this file.
import { useSyncExternalStore } from "react";
import { ProblemError, readProblem, unreachable } from "./api/problem";
import { takeFragmentValue } from "./location";

export type Role = "viewer" | "editor" | "operator";
export const ROLES: Role[] = ["viewer", "editor", "operator"];

export interface Session {
  token: string;
  role: Role;
  /** The name of the admin key, where the role may read it. */
  name: string | null;
}

const STORED = "weir.token";
/** How long another tab has to answer with its token. */
const TAB_WAIT_MS = 150;

let session: Session | null = null;
/** Why the last session ended, for the page of signing in. */
let ended: string | null = null;
const listeners = new Set<() => void>();
const tabs = "BroadcastChannel" in globalThis ? new BroadcastChannel("weir.session") : null;

function change(next: Session | null, why: string | null = null) {
  session = next;
  ended = why;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useSession = () => useSyncExternalStore(subscribe, () => session);
export const useEnding = () => useSyncExternalStore(subscribe, () => ended);
export const currentToken = () => session?.token ?? null;

/** Returns whether the role of this session may do what needs `role`. */
export function mayDo(role: Role): boolean {
  return session !== null && ROLES.indexOf(session.role) >= ROLES.indexOf(role);
}

/** Signs in with an admin key. Throws a `ProblemError` where the gateway does not take it. */
export async function signIn(token: string): Promise<void> {
  const known = await identify(token.trim());
  sessionStorage.setItem(STORED, known.token);
  change(known);
}

export function signOut(why: string | null = null) {
  sessionStorage.removeItem(STORED);
  change(null, why);
}

/** Goes on with the session of a link, of this tab, or of another tab. */
export async function resumeSession(): Promise<void> {
  const token = takeFragmentValue("token") ?? sessionStorage.getItem(STORED) ?? (await askTabs());
  answerTabs();
  if (!token) return;
  try {
    await signIn(token);
  } catch (error) {
    signOut(error instanceof ProblemError ? error.problem.detail : String(error));
  }
}

/** The gateway has no route that says who asks. The list of admin keys answers by role: an operator reads it, and others
 * are refused with the name of their role. */
async function identify(token: string): Promise<Session> {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch("/v1/admins", { headers }).catch(() => unreachable());
  if (response.ok) {
    const admins: { id: string; name: string }[] = await response.json();
    const id = token.split("_")[1];
    return { token, role: "operator", name: admins.find((admin) => admin.id === id)?.name ?? null };
  }
  const problem = await readProblem(response);
  const role = ROLES.find((known) => problem.detail.endsWith(`yours is ${known}`));
  if (response.status === 403 && role) return { token, role, name: null };
  throw new ProblemError(problem);
}

/** Asks the other tabs of this address, since `sessionStorage` is that of one tab. */
function askTabs(): Promise<string | null> {
  if (!tabs) return Promise.resolve(null);
  return new Promise((resolve) => {
    const heard = ({ data }: MessageEvent) => {
      if (typeof data?.token === "string") finish(data.token);
    };
    const finish = (token: string | null) => {
      tabs.removeEventListener("message", heard);
      resolve(token);
    };
    tabs.addEventListener("message", heard);
    tabs.postMessage("ask");
    setTimeout(finish, TAB_WAIT_MS, null);
  });
}

function answerTabs() {
  tabs?.addEventListener("message", ({ data }) => {
    if (data === "ask" && session) tabs.postMessage({ token: session.token });
  });
}
