// What ends with an account at another server.

/** `owner` is as the gateway writes it: `gateway`, `agent NAME` or `tenant NAME`. */
export function disconnectEffect(owner: string, server: string): string {
  if (owner === "gateway") return `The lists of ${server} are not looked at until someone connects it anew, with weir upstream connect ${server}.`;
  const [kind = "", ...rest] = owner.split(" ");
  const who = kind === "tenant" ? `any agent of ${rest.join(" ")}` : rest.join(" ") || owner;
  return `The next call by ${who} asks for a sign-in again. The account is ended at its issuer too, where that is possible.`;
}
