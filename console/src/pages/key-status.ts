// Whether a key is of use now.
import type { KeyView } from "../api/shapes";

export const statusOf = (key: Pick<KeyView, "revoked_ms" | "expires_ms">, now: number): "valid" | "revoked" | "expired" => {
  if (key.revoked_ms != null) return "revoked";
  return key.expires_ms != null && key.expires_ms <= now ? "expired" : "valid";
};
