// How long a key lives, and the key that replaces another one.
import type { KeyView } from "../api/shapes";

const DAY_MS = 86_400_000;

export const LIVES: { value: string; text: string }[] = [
  { value: "7", text: "in 7 days" },
  { value: "30", text: "in 30 days" },
  { value: "90", text: "in 90 days" },
  { value: "365", text: "in a year" },
];

export const lifeInSeconds = (days: string) => (days === "" ? {} : { expires_in_s: Number(days) * 86_400 });

/** The lifetime that is offered for the next key: the shortest one that is at least as long as the old key's. */
export function lifeOf({ created_ms, expires_ms }: Pick<KeyView, "created_ms" | "expires_ms">): string {
  if (expires_ms == null) return "";
  const days = (expires_ms - created_ms) / DAY_MS;
  return (LIVES.find(({ value }) => Number(value) >= Math.floor(days)) ?? LIVES.at(-1))?.value ?? "";
}

/** The request for a key with the same access and limits. */
export function rotatedKey({ agent, tenant, access, view, limits }: Pick<KeyView, "agent" | "tenant" | "access" | "view" | "limits">, days: string) {
  return { agent, tenant, ...(access != null && { access }), ...(view != null && { view }), limits, ...lifeInSeconds(days) };
}
