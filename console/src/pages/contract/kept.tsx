// The versions that are served alongside the live one: until when, and for whom.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../../api/client";
import { useKeptCalls, useServedVersions } from "../../api/queries";
import type { KeptView } from "../../api/shapes";
import { useAttempt } from "../../parts/attempt";
import { GuardedAction } from "../../parts/action";
import { Overlay } from "../../parts/overlay";
import { Loaded, ProblemNote } from "../../parts/states";
import { DataTable } from "../../parts/table";
import { Badge, Time, count } from "../../parts/words";
import { LastDayField } from "./keep";

interface MovedEnd {
  kept: KeptView;
  /** Whether it ends now. */
  isNow: boolean;
}

const majorOf = (version: string) => Number(version.split(".")[0]);

export function KeptVersions({ contract }: { contract: string }) {
  const versions = useServedVersions();
  const calls = useKeptCalls();
  const [moving, setMoving] = useState<MovedEnd | null>(null);
  return (
    <Loaded query={versions} lines={2}>
      {(all) => {
        const rows = all.kept.filter((kept) => kept.contract === contract);
        if (rows.length === 0) return <p className="soft">No version is kept alongside the live one.</p>;
        return (
          <section className="stack" aria-labelledby="kept-versions">
            <h2 id="kept-versions">Kept alongside the live one</h2>
            <DataTable
              label="Kept versions"
              rows={rows}
              rowKey={({ version }) => version}
              columns={[
                { head: "Version", lead: true, cell: ({ version }) => <span className="mono">{version}</span> },
                { head: "Answered by", cell: ({ shim }) => (shim == null ? "its own binding" : "a shim") },
                { head: "Ends", cell: (kept) => <End kept={kept} /> },
                {
                  head: "Callers",
                  cell: ({ version }) => (
                    <>
                      <Pinned agents={all.pins.filter((pin) => pin.contract === contract && pin.major === majorOf(version)).map(({ agent }) => agent)} />
                      {/* Where scrapers need a token, the page cannot tell. */}
                      {calls.data && <div className="soft">{count(calls.data.get(`${contract}@${version}`) ?? 0, "call")} since the start</div>}
                    </>
                  ),
                },
                {
                  head: "",
                  cell: (kept) => (
                    <div className="row">
                      <GuardedAction needs="operator" kind="compact" label={`Change the last day of ${kept.version}`} onPress={() => setMoving({ kept, isNow: false })}>
                        Change last day
                      </GuardedAction>
                      {!kept.has_ended && (
                        <GuardedAction needs="operator" kind="compact" label={`End ${kept.version} now`} onPress={() => setMoving({ kept, isNow: true })}>
                          End now
                        </GuardedAction>
                      )}
                    </div>
                  ),
                },
              ]}
            />
            {moving && <MoveEnd {...moving} onClose={() => setMoving(null)} />}
          </section>
        );
      }}
    </Loaded>
  );
}

function End({ kept }: { kept: KeptView }) {
  if (kept.has_ended) return <Badge tone="bad">ended</Badge>;
  return kept.sunset_ms == null ? <span>when an operator ends it</span> : <Time ms={kept.sunset_ms} />;
}

function Pinned({ agents }: { agents: string[] }) {
  if (agents.length === 0) return <span className="soft">no agent is pinned</span>;
  return (
    <Link href="/keys">
      {agents.slice(0, 3).join(", ")}
      {agents.length > 3 && ` and ${agents.length - 3} more`}
    </Link>
  );
}

function MoveEnd({ kept, isNow, onClose }: MovedEnd & { onClose: () => void }) {
  const client = useQueryClient();
  const [lastDay, setLastDay] = useState(kept.sunset_ms == null ? "" : new Date(kept.sunset_ms - 1).toISOString().slice(0, 10));
  const { error, isPending, attempt } = useAttempt();
  const name = `${kept.contract}@${kept.version}`;
  const move = async () => {
    await attempt(async () => {
      const params = { path: { contract: kept.contract, major: majorOf(kept.version) } };
      const sunset = isNow ? "now" : lastDay || null;
      await unwrap(api.PUT("/v1/versions/{contract}/{major}", { params, body: { sunset } }));
      await client.invalidateQueries();
      onClose();
    });
  };
  return (
    <Overlay title={isNow ? `End ${name} now?` : `Change the last day of ${name}`} kind="dialog" isOpen onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isPending) void move();
        }}
      >
        {isNow ? <p>Agents that are pinned to it are refused from now on, until their pin moves.</p> : <LastDayField value={lastDay} onChange={setLastDay} />}
        {error != null && <ProblemNote error={error} />}
        <div className="row">
          <GuardedAction needs="operator" kind={isNow ? "danger" : "main"} type="submit" isPending={isPending}>
            {isNow ? "End it" : "Change it"}
          </GuardedAction>
        </div>
      </form>
    </Overlay>
  );
}
