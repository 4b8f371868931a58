import { Link } from "wouter";
import { followedInterval, useCollections, useContracts, useDrafts, usePlans, usePlugins, useStats, useUpstreams } from "../api/queries";
import { STATS_S, type StatsView } from "../live";
import { PageHead } from "../parts/page";
import { Loaded } from "../parts/states";
import { DataTable } from "../parts/table";
import { Badge, ClassBadge, count, duration } from "../parts/words";
import { draftAddress } from "./drafts";

/** Points that the rate is of. */
const RATE_POINTS = 2;

export function OverviewPage() {
  const query = useStats();
  const start = query.data?.since_start;
  return (
    <>
      <PageHead title="Overview">What runs now, and what waits for someone.</PageHead>
      <div className="stack wide">
        {start?.served_tools === 0 && <FirstSteps />}
        <Needs trailFails={start?.is_audit_failing ?? false} />
        <Loaded query={query}>{(stats) => stats.since_start && <Figures stats={stats} />}</Loaded>
      </div>
    </>
  );
}

/** What a person does first, while nothing is served. */
function FirstSteps() {
  return (
    <section className="note stack tight" aria-label="First steps">
      <h2>Nothing is served yet</h2>
      <p>
        <Link href="/builder">Make a tool of a table or a file</Link> in the builder, or <Link href="/servers?add=yes">put another MCP server behind this gateway</Link>. Then{" "}
        <Link href="/try">try it</Link>, and <Link href="/keys?make=yes">make a key</Link> for an agent.
      </p>
    </section>
  );
}

/** Counts by name, the largest first. */
const mostFirst = (counts: Record<string, number>) => Object.entries(counts).sort(([, a], [, b]) => b - a);

/** The calls a second over the last seconds, since those of a single second jump. */
function rateNow(points: StatsView["points"]) {
  const last = points.slice(-RATE_POINTS);
  const seconds = last.reduce((sum, point) => sum + point.seconds, 0);
  return seconds > 0 ? last.reduce((sum, point) => sum + point.calls, 0) / seconds : 0;
}

function Figures({ stats }: { stats: StatsView }) {
  const { since_start: start } = stats;
  const rate = rateNow(stats.points);
  const figures: [string, string][] = [
    ["calls a second", rate.toFixed(rate < 10 ? 1 : 0)],
    ["in flight", String(stats.in_flight)],
    ["median time of a call", duration(start.p50_ms)],
    ["99th percentile", duration(start.p99_ms)],
    ["Weir's own part, median", duration(start.overhead_p50_ms)],
    ["tools served", String(start.served_tools)],
  ];
  return (
    <div className="stack wide">
      <div className="figures">
        {figures.map(([name, value]) => (
          <div className="figure" key={name}>
            <strong>{value}</strong>
            <span>{name}</span>
          </div>
        ))}
      </div>
      <section className="card stack tight">
        <h2>Calls a second</h2>
        <Sparkline points={stats.points} />
        <p className="soft small">
          The last 15 minutes, as counted by the gateway. Times are of all calls since the start. For longer spans read <code>/metrics</code> with Prometheus.
        </p>
      </section>
      <div className="columns">
        <Ranking title="Tools" rows={start.tools.map(({ tool, calls }) => [tool, calls])} href={(tool) => `/tools?tool=${encodeURIComponent(tool)}`} />
        <Ranking title="Agents" rows={start.agents.map(({ agent, calls }) => [agent, calls])} href={(agent) => `/audit?agent=${encodeURIComponent(agent)}`} />
        <Ranking title="How calls ended" rows={mostFirst(start.codes)} href={(outcome) => (outcome === "ok" ? "/audit?outcome=ok" : `/audit?kind=call&text=${encodeURIComponent(outcome)}`)} />
        <Ranking title="Refused before a call" rows={mostFirst(start.refusals)} href={() => "/audit?kind=refused"} />
      </div>
    </div>
  );
}

const SHOWN_MAX = 8;

function Ranking({ title, rows, href }: { title: string; rows: [string, number][]; href: (name: string) => string }) {
  return (
    <section className="stack tight">
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p className="soft">None since the start.</p>
      ) : (
        <DataTable
          label={title}
          rows={rows.slice(0, SHOWN_MAX)}
          rowKey={([name]) => name}
          staysTable
          columns={[
            { head: "Name", lead: true, cell: ([name]) => <Link href={href(name)}>{name}</Link> },
            { head: "Since the start", number: true, cell: ([, sum]) => sum.toLocaleString("en") },
          ]}
        />
      )}
    </section>
  );
}

function Sparkline({ points }: { points: StatsView["points"] }) {
  const now = points.at(-1)?.at_ms ?? 0;
  const rates = points.map((point) => ({ age: (now - point.at_ms) / 1000, rate: point.seconds > 0 ? point.calls / point.seconds : 0 }));
  const top = Math.max(1, ...rates.map(({ rate }) => rate));
  const line = rates.map(({ age, rate }) => `${STATS_S - age},${30 - (rate / top) * 28}`).join(" ");
  return (
    <svg className="spark" viewBox={`0 0 ${STATS_S} 31`} preserveAspectRatio="none" role="img" aria-label={`At most ${top.toFixed(1)} calls a second`}>
      <line x1="0" x2={STATS_S} y1="30" y2="30" />
      <polyline points={line} />
    </svg>
  );
}

/** What waits for a person, worst first. */
function Needs({ trailFails }: { trailFails: boolean }) {
  const drafts = useDrafts();
  const contracts = useContracts();
  const plugins = usePlugins(followedInterval);
  const upstreams = useUpstreams(followedInterval);
  const collections = useCollections();
  const plans = usePlans();
  const pending = drafts.data ?? [];
  const items = [
    ...(trailFails
      ? [{ key: "trail", tone: "bad" as const, word: "audit", href: "/audit", text: "The trail cannot be written, so calls are refused. Look at the disk of the state folder." }]
      : []),
    ...(contracts.data?.refused ?? []).map((file) => ({ key: `refused ${file.kind} ${file.file}`, tone: "bad" as const, word: "refused", href: "/contracts", text: `${file.kind} ${file.file}` })),
    ...(collections.data ?? [])
      .filter(({ drift }) => drift.length > 0)
      .map(({ contract, collection }) => ({
        key: `drift ${contract} ${collection}`, tone: "bad" as const, word: "source changed", href: `/contracts/${encodeURIComponent(contract)}?tab=drift`, text: `${contract}: ${collection}`,
      })),
    ...(upstreams.data?.upstreams ?? [])
      .filter(({ state, reason }) => state === "down" || reason != null)
      .map(({ name, state }) => ({ key: `down ${name}`, tone: "bad" as const, word: state === "down" ? "down" : "not published", href: `/servers?server=${encodeURIComponent(name)}`, text: `server ${name}` })),
    ...(plugins.data?.refused ?? []).map((file) => ({
      key: `plugin ${file.file}`, tone: file.held ? ("warn" as const) : ("bad" as const), word: file.health, href: "/plugins", text: `plugin ${file.file}`,
    })),
    ...(plugins.data?.plugins ?? [])
      .filter(({ health }) => health === "failing")
      .map(({ name }) => ({ key: `failing ${name}`, tone: "bad" as const, word: "failing", href: "/plugins", text: `plugin ${name}` })),
  ];
  const writes = (plans.data ?? []).filter(({ status, is_expired }) => status === "pending" && !is_expired).length;
  const isEmpty = items.length === 0 && pending.length === 0 && writes === 0;
  return (
    <section className="stack tight">
      <h2>Needs you</h2>
      {isEmpty ? (
        <p className="soft">Nothing waits.</p>
      ) : (
        <ul className="card flush needs">
          {items.map((item) => (
            <li key={item.key}>
              <Badge tone={item.tone}>{item.word}</Badge>
              <Link href={item.href}>{item.text}</Link>
            </li>
          ))}
          {writes > 0 && (
            <li>
              <Badge tone="warn">approval</Badge>
              <Link href="/approvals">{count(writes, "write waits", "writes wait")} for your approval</Link>
            </li>
          )}
          {pending.map((draft) => (
            <li key={draft.id}>
              <ClassBadge name={draft.class} />
              <Link href={draftAddress(draft)}>{draft.contract}</Link>
              <span className="soft">
                {draft.base ?? "nothing"} → {draft.version ?? "retired"}, waits for an {draft.needs}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
