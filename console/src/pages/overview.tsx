import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { readSamples, useCollections, useContracts, useDrafts, usePlugins, useStats, useUpstreams } from "../api/queries";
import { useLastSecond } from "../live";
import { quantile, rate, total, totalsBy, type Sample } from "../metrics";
import { PageHead } from "../parts/page";
import { Loaded } from "../parts/states";
import { DataTable } from "../parts/table";
import { Badge, ClassBadge } from "../parts/words";
import { draftAddress } from "./drafts";

interface Reading {
  at: number;
  samples: Sample[];
  calls: number;
}

const READ_MS = 2_000;
/** Readings that are kept: two minutes of them. */
const READINGS_MAX = 60;

/** Readings of this tab. The gateway keeps sums alone. */
const readings: Reading[] = [];

async function read(): Promise<Reading[]> {
  const samples = await readSamples();
  readings.push({ at: Date.now(), samples, calls: total(samples, "weir_agent_calls_total") });
  readings.splice(0, readings.length - READINGS_MAX);
  return [...readings];
}

export function OverviewPage() {
  const query = useQuery({ queryKey: ["metrics"], queryFn: read, refetchInterval: READ_MS, staleTime: 0 });
  return (
    <>
      <PageHead title="Overview">What runs now, and what waits for someone.</PageHead>
      <div className="stack wide">
        {total(query.data?.at(-1)?.samples ?? [], "weir_tools") === 0 && query.data && <FirstSteps />}
        <Needs trailFails={total(query.data?.at(-1)?.samples ?? [], "weir_audit_failing") > 0} />
        <Loaded query={query}>{(all) => <Figures all={all} />}</Loaded>
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

const duration = (seconds: number | null) => {
  if (seconds === null) return "–";
  if (seconds < 0.001) return `${(seconds * 1_000_000).toFixed(0)} µs`;
  return seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(1)} s`;
};

function Figures({ all }: { all: Reading[] }) {
  const now = all.at(-1);
  if (!now) return null;
  const { samples } = now;
  const before = all.at(-6) ?? all[0] ?? now;
  const perSecond = rate({ at: before.at, value: before.calls }, { at: now.at, value: now.calls });
  const took = (part: number) => duration(quantile(samples, "mcp_server_operation_duration_seconds", part, { mcp_method_name: "tools/call" }));
  const overhead = duration(quantile(samples, "weir_call_overhead_seconds", 0.5));
  const outcomes = totalsBy(samples, "weir_calls_total", "outcome");
  const live = useLastSecond();
  const rateNow = live?.calls_per_second ?? perSecond;
  const figures: [string, string][] = [
    ["calls a second", rateNow.toFixed(rateNow < 10 ? 1 : 0)],
    ["in flight", String(live?.in_flight ?? total(samples, "weir_in_flight_calls"))],
    ["half of the calls within", took(0.5)],
    ["99 of 100 within", took(0.99)],
    ["of it Weir's own, half within", overhead],
    ["tools served", String(total(samples, "weir_tools"))],
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
        <Sparkline />
        <p className="soft small">
          The last 15 minutes as the gateway knows them. Times are of all calls since the start. For longer spans read <code>/metrics</code> with Prometheus.
        </p>
      </section>
      <div className="columns">
        <Ranking title="Tools" rows={totalsBy(samples, "weir_calls_total", "tool")} href={(tool) => `/tools?tool=${encodeURIComponent(tool)}`} />
        <Ranking title="Agents" rows={totalsBy(samples, "weir_agent_calls_total", "agent")} href={(agent) => `/audit?agent=${encodeURIComponent(agent)}`} />
        <Ranking title="How calls ended" rows={outcomes} href={(outcome) => (outcome === "ok" ? "/audit?outcome=ok" : "/audit?kind=call")} />
        <Ranking title="Turned away before a call" rows={totalsBy(samples, "weir_refusals_total", "reason")} href={() => "/audit?kind=refused"} />
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

/** The time that the picture shows, in seconds, as much as the gateway keeps. */
const SHOWN_S = 900;

function Sparkline() {
  const { data } = useStats(SHOWN_S);
  const points = data?.points ?? [];
  const now = points.at(-1)?.at_ms ?? 0;
  const rates = points.map((point) => ({ age: (now - point.at_ms) / 1000, rate: point.seconds > 0 ? point.calls / point.seconds : 0 }));
  const top = Math.max(1, ...rates.map(({ rate }) => rate));
  const line = rates.map(({ age, rate }) => `${SHOWN_S - age},${30 - (rate / top) * 28}`).join(" ");
  return (
    <svg className="spark" viewBox={`0 0 ${SHOWN_S} 31`} preserveAspectRatio="none" role="img" aria-label={`At most ${top.toFixed(1)} calls a second`}>
      <line x1="0" x2={SHOWN_S} y1="30" y2="30" />
      <polyline points={line} />
    </svg>
  );
}

/** What waits for a person, worst first. */
function Needs({ trailFails }: { trailFails: boolean }) {
  const drafts = useDrafts();
  const contracts = useContracts();
  const plugins = usePlugins();
  const upstreams = useUpstreams();
  const collections = useCollections();
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
      .filter(({ state }) => state === "down")
      .map(({ name }) => ({ key: `down ${name}`, tone: "bad" as const, word: "down", href: `/servers?server=${encodeURIComponent(name)}`, text: `server ${name}` })),
    ...(plugins.data?.refused ?? []).map((file) => ({
      key: `plugin ${file.file}`, tone: file.held ? ("warn" as const) : ("bad" as const), word: file.health, href: "/plugins", text: `plugin ${file.file}`,
    })),
    ...(plugins.data?.plugins ?? [])
      .filter(({ health }) => health === "failing")
      .map(({ name }) => ({ key: `failing ${name}`, tone: "bad" as const, word: "failing", href: "/plugins", text: `plugin ${name}` })),
  ];
  const isEmpty = items.length === 0 && pending.length === 0;
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
