// Writes that wait for a person: what each would change, and the decision.
import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../api/client";
import { usePlan, usePlans } from "../api/queries";
import type { PlannedWrite, PlanView } from "../api/shapes";
import { useAddressValue } from "../location";
import { Action } from "../parts/action";
import { TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { PageHead } from "../parts/page";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable, type Column } from "../parts/table";
import { Badge, CodeBlock, CopyAction, Digest, pretty, Time } from "../parts/words";
import { changedRows, planState } from "./planned-write";

const address = (id: string) => `/approvals?plan=${encodeURIComponent(id)}`;

const COLUMNS: Column<PlanView>[] = [
  {
    head: "Tool",
    lead: true,
    cell: (plan) => (
      <Link href={address(plan.id)}>
        <strong>{plan.tool}</strong>
      </Link>
    ),
  },
  { head: "Agent", cell: ({ agent, subject }) => (subject ? `${agent} (${subject})` : agent) },
  { head: "Asked", cell: ({ created_ms }) => <Time ms={created_ms} /> },
  { head: "Status", cell: (plan) => <PlanBadge plan={plan} /> },
];

function PlanBadge({ plan }: { plan: PlanView }) {
  const { tone, word } = planState(plan);
  return <Badge tone={tone}>{word}</Badge>;
}

export function ApprovalsPage() {
  const [chosen] = useAddressValue("plan");
  const plans = usePlans();
  return (
    <>
      <PageHead title="Approvals">Writes that an agent asked for and that a person decides about. An approved one runs when the agent repeats its call.</PageHead>
      <div className="stack">
        {chosen && <Plan key={chosen} id={chosen} />}
        <Loaded query={plans}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="Nothing waits">
                <p>
                  A call of a tool whose contract says <code>approval: required</code> appears here, with what it would change.
                </p>
              </Empty>
            ) : (
              <DataTable label="Writes" rows={rows} rowKey={({ id }) => id} columns={COLUMNS} />
            )
          }
        </Loaded>
      </div>
    </>
  );
}

function Plan({ id }: { id: string }) {
  const plan = usePlan(id);
  return <Loaded query={plan}>{(view) => <PlanDetail plan={view} />}</Loaded>;
}

function PlanDetail({ plan }: { plan: PlanView }) {
  const isOpen = plan.status === "pending" && !plan.is_expired;
  return (
    <section className="stack tight" aria-labelledby="plan">
      <h2 id="plan" className="row">
        {plan.tool} <PlanBadge plan={plan} />
      </h2>
      <dl className="facts small">
        <dt>Agent</dt>
        <dd>
          <code>{plan.agent}</code>
          {plan.subject && <> for {plan.subject}</>}
        </dd>
        <dt>Contract</dt>
        <dd>
          <code>{plan.contract}</code>
        </dd>
        <dt>{isOpen ? "Waits until" : "Asked"}</dt>
        <dd>
          <Time ms={isOpen ? plan.expires_ms : plan.created_ms} />
        </dd>
        {plan.decided_ms != null && (
          <>
            <dt>Decided</dt>
            <dd>
              <Time ms={plan.decided_ms} /> by <code>{plan.decided_by}</code>
              {plan.reason && <>: {plan.reason}</>}
            </dd>
          </>
        )}
        <dt>Fingerprint</dt>
        <dd className="row">
          <Digest text={plan.fingerprint} />
          <CopyAction text={plan.fingerprint} />
        </dd>
      </dl>
      {plan.write ? <Write write={plan.write} /> : <p className="soft">What it would have changed is not kept once it has ended.</p>}
      {isOpen && <PlanDecision plan={plan} />}
    </section>
  );
}

function Write({ write }: { write: PlannedWrite }) {
  const rows = changedRows(write);
  return (
    <>
      {write.key && (
        <p>
          The record <code>{pretty(write.key as never)}</code>
        </p>
      )}
      {rows.length > 0 && (
        <DataTable
          label="What would change"
          rows={rows}
          rowKey={({ column }) => column}
          columns={[
            { head: "Column", lead: true, cell: ({ column }) => <code>{column}</code> },
            { head: "Now", cell: ({ before }) => <code>{before}</code> },
            { head: "Then", cell: ({ after, isChanged }) => (isChanged ? <strong><code>{after}</code></strong> : <code>{after}</code>) },
          ]}
        />
      )}
      {write.options && <CodeBlock label="What the source is asked with" text={pretty(write.options as never)} />}
      <p className="small soft">
        {write.guards.length > 0 ? "It runs only while the record is as shown." : "The source cannot check that the record is still the same when the write runs."}
      </p>
    </>
  );
}

function PlanDecision({ plan }: { plan: PlanView }) {
  const client = useQueryClient();
  const [isRejecting, setRejecting] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const params = { path: { id: plan.id } };
  const decide = async (send: () => Promise<unknown>) => {
    setError(null);
    try {
      await send();
      setRejecting(false);
    } catch (caught) {
      setError(caught);
    }
    await client.invalidateQueries({ queryKey: ["plans"] });
  };
  const approve = () => decide(() => unwrap(api.POST("/v1/approvals/{id}/approve", { params, body: { fingerprint: plan.fingerprint } })));
  return (
    <>
      {error != null && <ProblemNote error={error} />}
      <div className="row">
        <Action kind="main" onPress={approve}>
          Approve this write
        </Action>
        <Action onPress={() => setRejecting(true)}>Reject</Action>
      </div>
      <Overlay title="Reject the write" isOpen={isRejecting} onClose={() => setRejecting(false)}>
        <RejectForm reject={(reason) => decide(() => unwrap(api.POST("/v1/approvals/{id}/reject", { params, body: { reason: reason || null } })))} />
      </Overlay>
    </>
  );
}

function RejectForm({ reject }: { reject: (reason: string) => Promise<void> }) {
  const [reason, setReason] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void reject(reason.trim());
  };
  return (
    <form className="stack" onSubmit={submit}>
      <TextField label="Why" value={reason} onChange={setReason} help="The agent reads it." />
      <Action type="submit" kind="main">
        Reject it
      </Action>
    </form>
  );
}
