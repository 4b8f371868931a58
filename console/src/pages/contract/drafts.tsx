// The gate: a queue of drafts, the chosen one with what it does to callers, and the decision.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../../api/client";
import { ProblemError } from "../../api/problem";
import { useDraft, useVersion } from "../../api/queries";
import type { ContractDocument, DiffReport, DraftView, Finding } from "../../api/shapes";
import { useAddressValue } from "../../location";
import { Action, GuardedAction } from "../../parts/action";
import { TextField } from "../../parts/fields";
import { Overlay } from "../../parts/overlay";
import { Empty, Loaded, ProblemNote } from "../../parts/states";
import { Badge, ClassBadge, CodeBlock, CopyAction, Digest, Time, count, pretty } from "../../parts/words";
import { mayDo, type Role } from "../../session";
import type { TaggedContract } from "../contract";
import { draftAddress, VersionStep } from "../drafts";
import { Callers, Difference, Findings } from "./difference";
import { KeepFields } from "./keep";
import { NOT_KEPT, readKeep } from "./keep-choice";
import { isModelText, shownItems } from "./items";
import { LeaveOut } from "./leave-out";
import { TextLines } from "./text-lines";

export function DraftsTab({ detail }: { detail: TaggedContract }) {
  const [chosen] = useAddressValue("draft");
  const { drafts } = detail;
  const id = chosen || drafts[0]?.id || "";
  if (drafts.length === 0 && !chosen) {
    return (
      <Empty title="No draft">
        <p>When its file is edited, or it is submitted again, a change that needs a second look appears here.</p>
      </Empty>
    );
  }
  return (
    <div className="gate">
      <nav aria-label="Drafts">
        {drafts.map((draft) => (
          <Link key={draft.id} href={draftAddress(draft)} aria-current={draft.id === id ? "true" : undefined}>
            <span className="row">
              <ClassBadge name={draft.class} />
              {draft.status !== "pending" && <span className="soft small">{draft.status}</span>}
            </span>
            <VersionStep draft={draft} />
            <span className="soft small">
              <Time ms={draft.created_ms} />
            </span>
          </Link>
        ))}
      </nav>
      <Draft key={id} id={id} live={detail.version ?? null} />
    </div>
  );
}

function Draft({ id, live }: { id: string; live: string | null }) {
  const draft = useDraft(id);
  return <Loaded query={draft}>{(view) => <DraftDetail draft={view} live={live} />}</Loaded>;
}

/** `live` is the version that agents are served now. */
function DraftDetail({ draft, live }: { draft: DraftView; live: string | null }) {
  // Kept here rather than with the decision, which a draft no longer has once someone else has decided.
  const [error, setError] = useState<unknown>(null);
  const report = draft.report as unknown as DiffReport;
  const document = draft.document as unknown as ContractDocument | null;
  const [wasPending] = useState(draft.status === "pending");
  const items = shownItems(report.items);
  const worst = items.filter((item) => item.class === "breaking" || item.class === "undecided").length;
  const { upstream } = draft;
  return (
    <div className="stack wide">
      <section className="stack tight">
        <h2 className="row">
          <VersionStep draft={draft} />
          <ClassBadge name={draft.class} />
          {upstream != null && items.some(isModelText) && <Badge tone="warn">text for the model</Badge>}
        </h2>
        {draft.status === "pending" && <p>{summary(draft, worst, items.length)}</p>}
        <dl className="facts small">
          <dt>Submitted</dt>
          <dd>
            <Time ms={draft.created_ms} /> by <code>{draft.created_by}</code>
          </dd>
          <dt>Fingerprint</dt>
          <dd className="row">
            <Digest text={draft.fingerprint} />
            <CopyAction text={draft.fingerprint} />
          </dd>
          {draft.decided_ms != null && (
            <>
              <dt>{draft.status === "discarded" ? "Rejected" : draft.status === "published" ? "Published" : "Replaced"}</dt>
              <dd>
                <Time ms={draft.decided_ms} /> by <code>{draft.decided_by}</code>
              </dd>
            </>
          )}
        </dl>
      </section>
      <section className="stack tight">
        <h2>Whose calls would fail</h2>
        <Callers impact={draft.impact} />
      </section>
      <section className="stack tight">
        <h2>What changes</h2>
        <Difference
          report={report}
          isForeign={upstream != null}
          tools={document?.tools}
          aboutNewTool={upstream == null ? undefined : ((tool) => <LeaveOut upstream={upstream} contract={draft.contract} tool={tool} />)}
        />
      </section>
      <section className="stack tight">
        <h2>What a model may misread</h2>
        <Findings findings={(draft.findings ?? []) as unknown as Finding[]} />
      </section>
      {document && <DocumentText draft={draft} document={document} />}
      {draft.status === "pending" ? (
        <Decision draft={draft} error={error} setError={setError} />
      ) : (
        <>
          {error != null && <Moved error={error} draft={draft} />}
          <DecidedNote draft={draft} live={live} isFresh={wasPending} />
        </>
      )}
    </div>
  );
}

/** The compiled document line by line, next to what its changes mean. */
function DocumentText({ draft, document }: { draft: DraftView; document: ContractDocument }) {
  const [isOpen, setOpen] = useState(false);
  const base = useVersion(draft.contract, isOpen && draft.base ? draft.base : "");
  const text = pretty(document as never);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{draft.base ? `The compiled document, line by line against ${draft.base}` : "The compiled document"}</summary>
      {isOpen && !draft.base && <CodeBlock text={text} label="Compiled document" />}
      {isOpen && draft.base && (
        <Loaded query={base}>{(version) => <TextLines before={pretty(version.document as never)} after={text} label="Compiled document" />}</Loaded>
      )}
    </details>
  );
}

function summary(draft: DraftView, worst: number, all: number): string {
  if (draft.version == null) return "The contract would be retired: none of its tools would be served.";
  if (draft.class === "first") return "None of it was published before. Read its tools' texts before agents do.";
  if (worst > 0) return `${count(worst, "change")} of ${all} may break callers. Agents are served ${draft.base} until someone agrees.`;
  return `${count(all, "change")}, none of which breaks a call that was valid.`;
}

/** Replaces the buttons: what became of the draft, and what agents are served. */
function DecidedNote({ draft, live, isFresh }: { draft: DraftView; live: string | null; isFresh: boolean }) {
  const note = useRef<HTMLDivElement>(null);
  const served = `Agents are served ${live ?? "nothing of it"}.`;
  // The button that was pressed is gone.
  useEffect(() => {
    if (isFresh) note.current?.focus();
  }, [isFresh]);
  const words = draft.status === "published" ? "Published" : draft.status === "discarded" ? "Rejected" : "Replaced by a later draft";
  return (
    <div className="decision" role="status" aria-label="What became of it" tabIndex={-1} ref={note}>
      <p>
        <strong>{words}</strong>
        {draft.status !== "superseded" && draft.decided_by && (
          <>
            {" "}
            by {draft.decided_by}
            {draft.decided_ms != null && (
              <>
                , <Time ms={draft.decided_ms} />
              </>
            )}
          </>
        )}
        . {served}
      </p>
    </div>
  );
}

function Decision({ draft, error, setError }: { draft: DraftView; error: unknown; setError: (error: unknown) => void }) {
  const client = useQueryClient();
  const [asking, setAsking] = useState<"approve" | "reject" | null>(null);
  const [typed, setTyped] = useState("");
  const [choice, setChoice] = useState(NOT_KEPT);
  const [isPending, setPending] = useState(false);
  const needs = (draft.needs ?? "editor") as Role;
  const isBreaking = draft.class === "breaking" || draft.class === "undecided" || draft.version == null;
  const { keeping } = draft;
  const kept = keeping == null ? { body: {} } : readKeep(choice, keeping);
  const isConfirmed = typed === draft.contract && kept.fault === undefined;
  const decide = async (approve: boolean) => {
    setPending(true);
    setError(null);
    const params = { path: { id: draft.id } };
    try {
      if (approve) await unwrap(api.POST("/v1/drafts/{id}/publish", { params, body: { fingerprint: draft.fingerprint, ...kept.body } as never }));
      else await unwrap(api.POST("/v1/drafts/{id}/discard", { params }));
      setAsking(null);
    } catch (caught) {
      setError(caught);
      setAsking(null);
    }
    setPending(false);
    await client.invalidateQueries();
  };
  const approve = () => (isBreaking ? setAsking("approve") : void decide(true));
  return (
    <div className="decision" role="group" aria-label="Decision">
      {error != null && <Moved error={error} draft={draft} />}
      <div className="row">
        <GuardedAction needs={needs} kind={isBreaking ? "danger" : "main"} onPress={approve} isPending={isPending}>
          {isBreaking ? "Approve the breaking change" : "Approve"}
        </GuardedAction>
        <GuardedAction needs="editor" onPress={() => setAsking("reject")} isDisabled={isPending}>
          Reject
        </GuardedAction>
        <span className="soft small">
          of <Digest text={draft.fingerprint} />: what is published is what is shown here
        </span>
      </div>
      <Overlay title={`Break callers of ${draft.contract}?`} kind="dialog" isOpen={asking === "approve"} onClose={() => setAsking(null)}>
        <p>
          <VersionStep draft={draft} /> goes live at once. Calls that were valid will be refused.
        </p>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (isConfirmed && !isPending && mayDo(needs)) void decide(true);
          }}
        >
          <TextField label={<>Type <code>{draft.contract}</code> to confirm</>} value={typed} onChange={setTyped} autoFocus />
          {keeping && <KeepFields keeping={keeping} choice={choice} onChange={setChoice} />}
          <div className="row">
            <GuardedAction needs={needs} kind="danger" type="submit" isDisabled={!isConfirmed} isPending={isPending}>
              Publish
            </GuardedAction>
            <Action onPress={() => setAsking(null)}>Keep the draft</Action>
          </div>
        </form>
      </Overlay>
      <Overlay title="Reject this draft?" kind="dialog" isOpen={asking === "reject"} onClose={() => setAsking(null)}>
        <p>Agents are served {draft.base ?? "nothing of it"}, as now. The draft is kept in the history.</p>
        <div className="row">
          <GuardedAction needs="editor" kind="danger" isPending={isPending} onPress={() => void decide(false)}>
            Reject
          </GuardedAction>
          <Action onPress={() => setAsking(null)}>Keep it</Action>
        </div>
      </Overlay>
    </div>
  );
}

/** What was decided on has changed: the page was read again and shows the current state. */
function Moved({ error, draft }: { error: unknown; draft: DraftView }) {
  if (!(error instanceof ProblemError && error.isMoved)) return <ProblemNote error={error} />;
  return (
    <div className="stack tight">
      <ProblemNote error={error} />
      <p>
        Nothing was published. This page was read again: the draft {draft.status === "pending" ? "still waits" : `is ${draft.status}`}, compared with{" "}
        <Badge>{draft.base ?? "nothing"}</Badge>, and its fingerprint is <Digest text={draft.fingerprint} />.
      </p>
    </div>
  );
}
