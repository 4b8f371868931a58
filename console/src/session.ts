// Who is signed in. All code that starts, keeps and ends a session is in this file.
import { useSyncExternalStore } from "react";
import { asProblem, ProblemError, readProblem, unreachable } from "./api/problem";
import { takeIssuerAnswer } from "./issuer-sign-in";
import { takeFragmentValue } from "./location";

export type Role = "approver" | "auditor" | "viewer" | "editor" | "operator";
/** Each role may do what those before it may, except approve writes. */
export const ROLES: Role[] = ["approver", "auditor", "viewer", "editor", "operator"];

export interface Session {
  token: string;
  role: Role;
  /** Whether this session may decide about writes that wait for a person. */
  approves: boolean;
  /** The name of the admin key. */
  name: string;
}

const STORED = "weir.session";
/** The time that another tab has to answer with its token. */
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
/** The name of the admin key of this session. */
export const currentAdmin = () => session?.name ?? "";

export const currentRole = () => session?.role ?? "viewer";

/** Returns whether the role of this session may do what needs `role`. */
export function mayDo(role: Role): boolean {
  return session !== null && ROLES.indexOf(session.role) >= ROLES.indexOf(role);
}

/** Returns whether this session may decide about writes that wait for a person. */
export const mayApprove = () => session?.approves === true;

/** Begins a session with an admin key or a link. Neither is stored. Throws a `ProblemError` if the gateway does not accept it. */
export async function signIn(secret: string): Promise<void> {
  const begun: Session = await send("POST", secret.trim());
  keep(begun);
}

function keep({ token, role, approves, name }: Session) {
  sessionStorage.setItem(STORED, token);
  change({ token, role, approves, name });
}

/** Ends the session, in other tabs too. */
export function signOut() {
  const ending = session;
  forget();
  if (ending) void send("DELETE", ending.token).catch(() => undefined);
}

/** Forgets a session that the gateway no longer accepts. */
export function forget(why: string | null = null) {
  sessionStorage.removeItem(STORED);
  change(null, why);
}

/** Resumes a session that a link or an issuer's answer begins, or that of this tab or of another tab. */
export async function resumeSession(): Promise<void> {
  const brought = takeFragmentValue("link") ?? takeFragmentValue("token") ?? (await takeIssuerLink());
  const token = brought ?? sessionStorage.getItem(STORED) ?? (await askTabs());
  answerTabs();
  if (!token) return;
  try {
    if (brought) await signIn(brought);
    else keep({ ...(await send("GET", token)), token });
  } catch (error) {
    const { status, detail } = asProblem(error);
    // A gateway that does not answer now may take the session later.
    if (status === 401) forget(detail);
    else change(null, detail);
  }
}

/** The sign-in page shows why an issuer's answer was refused. */
async function takeIssuerLink(): Promise<string | null> {
  try {
    return await takeIssuerAnswer();
  } catch (error) {
    change(null, asProblem(error).detail);
    return null;
  }
}

async function send(method: string, token: string) {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch("/v1/session", { method, headers }).catch(() => unreachable());
  if (!response.ok) throw new ProblemError(await readProblem(response));
  return response.status === 204 ? null : await response.json();
}

/** Asks the other tabs of this address, since `sessionStorage` belongs to one tab. */
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
  tabs?.addEventListener("message", answerTab);
}

function answerTab({ data }: MessageEvent) {
  if (data === "ask" && session) tabs?.postMessage({ token: session.token });
  if (data === "leave") signOut();
}

/** Signs out in all tabs: one that remained signed in would answer this tab when it is loaded again. */
export function leaveTabs() {
  tabs?.postMessage("leave");
  signOut();
}
