// The keys of the configuration that wait for the next start, as docs/configuration.md lists them.
const RESTART_KEYS: Record<string, string[] | "all"> = {
  folders: "all",
  state: "all",
  audit: "all",
  traces: "all",
  admin: ["listen", "enabled"],
  http: ["listen", "connections_max", "address_connections_max", "sessions_max", "session_idle_s", "streams_max"],
  limits: ["in_flight_max", "instances_max", "ledger"],
  metrics: ["tools_max"],
  policy: ["folder"],
  log: ["format"],
};

/** Whether a change of this key takes effect only after the next start. */
export function needsRestart(section: string, key: string): boolean {
  const keys = RESTART_KEYS[section] ?? [];
  return keys === "all" || keys.includes(key);
}
