import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../api/client";
import { useContracts, useKeys } from "../api/queries";
import type { KeyView, MadeKey } from "../api/shapes";
import { setAddressValues, useAddressValue } from "../location";
import { useAttempt } from "../parts/attempt";
import { Action, GuardedAction } from "../parts/action";
import { CheckField, ChoiceField, TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { PageHead } from "../parts/page";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Badge, count, Time } from "../parts/words";
import { mayDo } from "../session";
import { lifeInSeconds, LIVES } from "./key-life";
import { quotaWords, readQuota } from "./key-quota";
import { KeyRotation } from "./key-rotation";
import { statusOf } from "./key-status";
import { MadeNote } from "./made-key";
import { Pins } from "./pins";
import { RefusedCallers } from "./refused-callers";

export function KeysPage() {
  const keys = useKeys();
  const [status, setStatus] = useAddressValue("status");
  const [text, setText] = useAddressValue("q");
  const [making, setMaking] = useAddressValue("make");
  const [revoking, setRevoking] = useState<KeyView | null>(null);
  const [rotating, setRotating] = useAddressValue("rotate");
  const columns: Column<KeyView>[] = [
    { head: "Agent", lead: true, cell: (key) => <strong>{key.agent}</strong> },
    { head: "Tenant", cell: (key) => (key.tenant === key.agent ? null : key.tenant) },
    { head: "May use", cell: (key) => <AccessWords view={key} /> },
    { head: "Limits", cell: (key) => <LimitWords view={key} /> },
    { head: "Quota", cell: (key) => <QuotaWords view={key} /> },
    {
      head: "Made",
      cell: (key) => (
        <>
          <Time ms={key.created_ms} /> <div className="soft">{key.created_by}</div>
        </>
      ),
    },
    {
      head: "Last used",
      cell: (key) =>
        key.last_used_ms == null ? (
          <span className="soft">never</span>
        ) : (
          <>
            <Time ms={key.last_used_ms} /> <div className="soft">{count(key.calls_24h, "call")} in 24 hours</div>
          </>
        ),
    },
    { head: "Expires", cell: (key) => <Time ms={key.expires_ms} /> },
    {
      head: "Status",
      cell: (key) => {
        const now = statusOf(key, Date.now());
        return <Badge tone={now === "valid" ? "good" : ""}>{now}</Badge>;
      },
    },
    {
      head: "",
      cell: (key) =>
        statusOf(key, Date.now()) === "valid" ? (
          <div className="row">
            <Link className="button compact" href={`/try?agent=${encodeURIComponent(key.agent)}`}>
              Try as
            </Link>
            <Link className="button compact" href={`/tools?agent=${encodeURIComponent(key.agent)}`} aria-label={`What ${key.agent} sees`}>
              What it sees
            </Link>
            <Action kind="compact" label={`Rotate the key of ${key.agent}`} isDisabled={!mayDo("operator")} onPress={() => setRotating(key.id, { push: true })}>
              Rotate
            </Action>
            <Action kind="compact" label={`Revoke the key of ${key.agent}`} isDisabled={!mayDo("operator")} onPress={() => setRevoking(key)}>
              Revoke
            </Action>
          </div>
        ) : null,
    },
  ];
  const rotated = keys.data?.find(({ id }) => id === rotating);
  return (
    <>
      <PageHead
        title="Agents and keys"
        actions={
          <GuardedAction needs="operator" kind="main" onPress={() => setMaking("yes")}>
            Make a key
          </GuardedAction>
        }
      >
        An agent proves itself with a key. A key is never changed: rotate it, or make another one and revoke it.
      </PageHead>
      <div className="stack wide">
        <Loaded query={keys}>
          {(all) => {
            const rows = all
              .filter((key) => status === "all" || statusOf(key, Date.now()) === (status || "valid"))
              .filter((key) => `${key.agent} ${key.tenant}`.toLowerCase().includes(text.toLowerCase()))
              .sort((a, b) => b.created_ms - a.created_ms);
            return (
              <div className="stack">
                {all.length > 0 && (
                  <div className="filters">
                    <TextField type="search" label="Find" value={text} onChange={setText} placeholder="Agent or tenant" />
                    <ChoiceField
                      label="Status"
                      value={status || "valid"}
                      onChange={(value) => setStatus(value === "valid" ? "" : value)}
                      options={["valid", "expired", "revoked", "all"]}
                    />
                  </div>
                )}
                {rows.length > 0 ? (
                  <DataTable label="Keys" columns={columns} rows={rows} rowKey={({ id }) => id} />
                ) : all.length > 0 ? (
                  <Empty title="No key fits the filters" />
                ) : (
                  <Empty title="No key was made yet">
                    <p>
                      Without keys, and while <code>[identity] required</code> is not set, clients on this machine call as <code>local</code>.
                      Make a key for each agent; it is shown once, with what connects a client.
                    </p>
                  </Empty>
                )}
              </div>
            );
          }}
        </Loaded>
        <Pins />
        <RefusedCallers />
      </div>
      <Overlay title="Make a key" isOpen={making !== ""} onClose={() => setAddressValues({ make: "", contract: "" })}>
        <KeyForm />
      </Overlay>
      <Overlay title="Rotate a key" isOpen={rotating !== ""} onClose={() => setRotating("")}>
        {rotated && <KeyRotation view={rotated} onClose={() => setRotating("")} />}
        {!rotated && keys.data && <p>No key has this id.</p>}
      </Overlay>
      {revoking && <Revoke view={revoking} onClose={() => setRevoking(null)} />}
    </>
  );
}

function AccessWords({ view }: { view: KeyView }) {
  if (view.access == null) return <span>everything</span>;
  const names = [...view.access.contracts, ...view.access.tools];
  return (
    <span className="small">
      {names.length === 0 ? "nothing" : names.slice(0, 4).join(", ")}
      {names.length > 4 && <span title={names.join(", ")}> and {names.length - 4} more</span>}
      {view.view && <div className="soft">view {view.view}</div>}
    </span>
  );
}

function LimitWords({ view }: { view: KeyView }) {
  const { rate, tools } = view.limits as { rate?: string; tools?: Record<string, string> };
  const lines = [...(rate ? [rate] : []), ...Object.entries(tools ?? {}).map(([tool, limit]) => `${tool} ${limit}`)];
  return lines.length === 0 ? null : lines.map((line) => <div key={line}>{line}</div>);
}

function QuotaWords({ view }: { view: KeyView }) {
  const lines = quotaWords(view.limits);
  return lines.length === 0 ? null : lines.map((line) => <div key={line}>{line}</div>);
}

function Revoke({ view, onClose }: { view: KeyView; onClose: () => void }) {
  const client = useQueryClient();
  const { error, isPending, attempt } = useAttempt();
  const revoke = async () => {
    await attempt(async () => {
      await unwrap(api.DELETE("/v1/keys/{id}", { params: { path: { id: view.id } } }));
      await client.invalidateQueries({ queryKey: ["keys"] });
      onClose();
    });
  };
  return (
    <Overlay title={`Revoke the key of ${view.agent}?`} kind="dialog" isOpen onClose={onClose}>
      <p>The next call with it is refused, and what it has open ends. This cannot be undone; make another key instead.</p>
      {error != null && <ProblemNote error={error} />}
      <div className="row">
        <GuardedAction needs="operator" kind="danger" isPending={isPending} onPress={() => void revoke()}>
          Revoke
        </GuardedAction>
        <Action onPress={onClose}>Keep it</Action>
      </div>
    </Overlay>
  );
}

function KeyForm() {
  const client = useQueryClient();
  const keys = useKeys();
  const [wanted] = useAddressValue("contract");
  const contracts = useContracts();
  const [agent, setAgent] = useState("");
  const [tenant, setTenant] = useState("");
  const [rate, setRate] = useState("");
  const [quotaDay, setQuotaDay] = useState("");
  const [quotaMonth, setQuotaMonth] = useState("");
  const [days, setDays] = useState("90");
  const [isNarrow, setNarrow] = useState(true);
  const [chosen, setChosen] = useState<string[]>(wanted === "" ? [] : [wanted]);
  const [made, setMade] = useState<MadeKey | null>(null);
  const { error, isPending, attempt } = useAttempt();
  const live = contracts.data?.contracts.filter(({ version }) => version).map(({ name }) => name) ?? [];
  const day = readQuota(quotaDay);
  const month = readQuota(quotaMonth);
  const isFaulty = day.fault !== undefined || month.fault !== undefined;
  const make = async (event: FormEvent) => {
    event.preventDefault();
    if (isPending || isFaulty) return;
    await attempt(async () => {
      const body = {
        agent,
        ...(tenant && { tenant }),
        ...(isNarrow && { access: { contracts: chosen, tools: [] } }),
        ...lifeInSeconds(days),
        limits: { ...(rate && { rate }), quota_day: day.calls, quota_month: month.calls },
      };
      setMade(await unwrap(api.POST("/v1/keys", { body: body as never })));
      await client.invalidateQueries({ queryKey: ["keys"] });
    });
  };
  if (made) return <MadeNote made={made} />;
  return (
    <form className="stack" onSubmit={(event) => void make(event)}>
      {keys.data?.length === 0 && (
        <p className="note warn">This is the first key. From now on every client needs one, those on this machine too.</p>
      )}
      <TextField label="Agent" value={agent} onChange={setAgent} required help="Who holds it. Records of its calls have this name. Letters, digits and - _ . @ :" />
      <TextField label="Tenant" value={tenant} onChange={setTenant} placeholder={agent || "the agent itself"} help="The customer or team of the agent. Left empty: the agent itself." />
      <fieldset className="stack tight">
        <legend>What it may use</legend>
        <label className="check">
          <input type="radio" name="access" checked={isNarrow} onChange={() => setNarrow(true)} /> Only these contracts
        </label>
        {isNarrow && (
          <div className="nested">
            {live.map((name) => (
              <CheckField
                key={name}
                label={name}
                value={chosen.includes(name)}
                onChange={(yes) => setChosen(yes ? [...chosen, name] : chosen.filter((other) => other !== name))}
              />
            ))}
            {live.length === 0 && <p className="soft">No contract is served.</p>}
          </div>
        )}
        <label className="check">
          <input type="radio" name="access" checked={!isNarrow} onChange={() => setNarrow(false)} /> Everything, and what is published later
        </label>
      </fieldset>
      <ChoiceField label="Expires" value={days} onChange={setDays} none="never" options={LIVES} />
      <TextField label="Rate" value={rate} onChange={setRate} placeholder="the gateway's own" help="Of all its requests, such as 60/min or 10/s." />
      <TextField label="Calls in a day" value={quotaDay} onChange={setQuotaDay} placeholder="the gateway's own" fault={day.fault} help="Of all keys of the agent together. Days are UTC." />
      <TextField label="Calls in a month" value={quotaMonth} onChange={setQuotaMonth} placeholder="the gateway's own" fault={month.fault} help="Months are UTC too." />
      {error != null && <ProblemNote error={error} />}
      <div className="row">
        <GuardedAction needs="operator" kind="main" type="submit" isPending={isPending} isDisabled={agent === "" || isFaulty || (isNarrow && chosen.length === 0)}>
          Make the key
        </GuardedAction>
        {isNarrow && chosen.length === 0 && <span className="soft small">choose at least one contract</span>}
      </div>
    </form>
  );
}
