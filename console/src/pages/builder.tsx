import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../api/client";
import { useFormView, type FormView } from "../api/form";
import { asProblem, ProblemError, type Fault } from "../api/problem";
import { contractQuery, documentOf, useContract, useContracts, usePreview, type PreviewedContract } from "../api/queries";
import { SETTLE_MS } from "../api/settle";
import { useColumns } from "../api/sources";
import type { DiffReport, Json, Submitted, ToolDocument } from "../api/shapes";
import { Compared } from "../builder/compared";
import { BuilderContext, type BuilderState } from "../builder/context";
import { valueAt, type Place } from "../builder/edit";
import { Inspector } from "../builder/inspector";
import { LivePane } from "../builder/live";
import { Outline } from "../builder/outline";
import { FileStart } from "../builder/file-start";
import { SourceDraft } from "../builder/source-draft";
import { partAt, placeOf, pointerOf, toolOf } from "../builder/place";
import { useWork, valueOfText, type TextWork } from "../builder/work";
import { setAddressValues, useAddressValue } from "../location";
import { Action, GuardedAction } from "../parts/action";
import { cutCode } from "../parts/code-text";
import { CheckField, ChoiceField } from "../parts/fields";
import { PageHead } from "../parts/page";
import { FaultList, Loaded, ProblemNote } from "../parts/states";
import { Badge, ClassBadge, CopyAction } from "../parts/words";
import { isRecord } from "../schema/exact";
import { requiredOf } from "../schema/model";
import { currentRole, mayDo } from "../session";
import "../styles/builder.css";
import { Difference } from "./contract/difference";
import { draftAddress } from "./drafts";
import { trialAddress } from "./tools";

const START = `contract: my-tools
collections: {}
tools: []
`;

export function BuilderPage() {
  const contracts = useContracts();
  const form = useFormView();
  const [name] = useAddressValue("contract");
  const [done, setDone] = useState<Submission | null>(null);
  const choose = (contract: string) => {
    setDone(null);
    setAddressValues({ contract, at: "" }, { push: true });
  };
  // What was new is a contract now, and the next change is one of it.
  const show = (submission: Submission | null) => {
    setDone(submission);
    const { verdict, contract } = submission?.submitted ?? {};
    if (name === "" && verdict === "published" && contract) setAddressValues({ contract });
  };
  return (
    <>
      <PageHead title="Builder">Put tools together and see what agents get. A change that breaks callers waits until an operator publishes it.</PageHead>
      <Loaded query={form}>
        {(view) => (
          <Loaded query={contracts}>
            {({ contracts: all }) => {
              const chosen = all.find((contract) => contract.name === name);
              const file = chosen?.origin === "file" ? (chosen.file ?? chosen.owner ?? "") : null;
              return (
                <div className="stack">
                  <div className="filters">
                    <ChoiceField label="Contract" value={name} onChange={choose} none="A new one" options={all.filter(({ origin }) => origin === "api" || origin === "file").map((contract) => contract.name)} />
                  </div>
                  <Outcome done={done} />
                  {name === "" ? (
                    <Work key="new" name="" text={START} etag="" file={null} form={view} onDone={show} />
                  ) : (
                    <OfContract key={name} name={name} file={file} form={view} onDone={show} />
                  )}
                </div>
              );
            }}
          </Loaded>
        )}
      </Loaded>
    </>
  );
}

/** What was submitted, and the tool that is tried next. */
interface Submission {
  submitted: Submitted;
  tool: ToolDocument | null;
}

/** A tool that needs no argument shows something at once. */
const firstToTry = (tools: ToolDocument[]) => tools.find(({ inputSchema }) => requiredOf(inputSchema).length === 0) ?? tools[0] ?? null;

type ContractWork = Pick<WorkProps, "name" | "file" | "form" | "onDone">;

function OfContract(work: ContractWork) {
  const contract = useContract(work.name);
  return <Loaded query={contract}>{({ source, etag }) => <Work {...work} text={source ?? ""} etag={etag} />}</Loaded>;
}

/** Returns the tag of the contract if it is as this submission left it. If another submission followed, the next one has to be refused. */
function renewedTag(now: { source?: string | null; etag: string; drafts: { id: string }[] } | undefined, text: string, { draft }: Submitted): string | null {
  const isOwn = draft ? now?.drafts[0]?.id === draft : now?.source === text;
  return isOwn ? (now?.etag ?? null) : null;
}

interface WorkProps {
  name: string;
  /** The current text and tag; the work is compared with those that it began with. */
  text: string;
  etag: string;
  /** The file that the contract comes from. */
  file: string | null;
  form: FormView;
  onDone: (done: Submission | null) => void;
}

function Work({ name, text: newest, etag, file, form, onDone }: WorkProps) {
  const work = useWork(name, { text: newest, etag });
  const { text } = work;
  const [notes, setNotes] = useState<string[]>([]);
  const settled = useSettled(text, SETTLE_MS);
  const preview = usePreview(settled, mayDo("editor"));
  const isBehind = settled !== text || preview.isFetching;
  const isUntouched = name === "" && text === START;
  // An empty contract is not a problem for a person who is only beginning.
  const shown = isUntouched && preview.data ? { ...preview, data: { ...preview.data, problems: NONE } } : preview;
  const problems = useMemo(() => (isUntouched ? NONE : ownProblems(preview.data?.problems ?? NONE, file)), [preview.data, file, isUntouched]);
  const { state, focusCount, isYaml } = useBuilderState(work, form, problems, setNotes);
  const onKey = (event: React.KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !event.currentTarget.contains(event.target as Node)) return;
    const key = event.key.toLowerCase();
    const isRedo = key === "y" || (key === "z" && event.shiftKey);
    if (key !== "z" && !isRedo) return;
    event.preventDefault();
    if (isRedo) work.redo();
    else work.undo();
  };
  return (
    <BuilderContext.Provider value={state}>
      <div className="stack" onKeyDown={onKey}>
        <WorkBar name={name} work={work} file={file} newest={{ text: newest, etag }} preview={isBehind ? undefined : preview.data} onDone={onDone} />
        {name === "" && <SourceDraft isUntouched={text === START} />}
        {isUntouched && <FileStart />}
        {notes.length > 0 && (
          <div className="note warn stack tight" role="status">
            <strong>The draft leaves out or guesses:</strong>
            <ul>
              {notes.map((note) => (
                <li key={note}>
                  {cutCode(note).map(({ text, isCode }, at) => (isCode ? <code key={at}>{text}</code> : text))}
                </li>
              ))}
            </ul>
            <div>
              <Action kind="compact" onPress={() => setNotes([])}>
                I have read it
              </Action>
            </div>
          </div>
        )}
        {work.refusal && (
          <p className="note bad" role="alert">
            {work.refusal}
          </p>
        )}
        {!isYaml && <p className="note warn">The text is not one valid YAML document. The parts show the last text that was: correct the text, or undo.</p>}
        <div className="builder">
          <Outline />
          <Inspector focusCount={focusCount} />
          <LivePane query={shown} isBehind={isBehind} text={text} onText={(next) => work.setText(next, "text")} compared={<Compared query={shown} isBehind={isBehind} served={name === "" ? "" : newest} text={settled} />} />
        </div>
      </div>
    </BuilderContext.Provider>
  );
}

/** One list, so that the editor sees whether it changed. */
const NONE: Fault[] = [];

/** It is shown once that a contract belongs to a file, and not as a fault of its text. */
function ownProblems(problems: Fault[], file: string | null): Fault[] {
  return file === null ? problems : problems.filter(({ place }) => place !== "/contract");
}

function useBuilderState(work: TextWork, form: FormView, faults: Fault[], setNotes: (notes: string[]) => void) {
  const [pointer, setPointer] = useAddressValue("at");
  const [focusCount, setFocusCount] = useState(0);
  const last = useRef<Json | undefined>(undefined);
  const read = useMemo(() => valueOfText(work.text), [work.text]);
  if (read !== undefined) last.current = read;
  const root = last.current;
  const part = useMemo(() => partAt(placeOf(pointer, root), root), [pointer, root]);
  const toolAt = toolOf(part, root);
  const tool = toolAt ? valueAt(root, toolAt) : undefined;
  const collection = part.kind === "collection" ? part.at[1] : isRecord(tool) ? tool.collection : undefined;
  const entry = typeof collection === "string" ? valueAt(root, ["collections", collection]) : undefined;
  const columns = useColumns(entry).data ?? [];
  const { change, setText } = work;
  const select = useCallback(
    (at: Place, options?: { focus?: boolean }) => {
      setPointer(pointerOf(at));
      if (options?.focus) setFocusCount((count) => count + 1);
    },
    [setPointer],
  );
  const state: BuilderState = {
    root,
    form,
    faults,
    part,
    verb: isRecord(tool) && typeof tool.verb === "string" ? tool.verb : null,
    columns,
    select,
    selectPointer: setPointer,
    change,
    replaceText: (text, notes) => {
      setText(text);
      setNotes(notes);
      setPointer("");
    },
  };
  return { state, focusCount, isYaml: read !== undefined };
}

/** Undoing, submitting, and what became of it. */
interface BarProps {
  name: string;
  work: TextWork;
  file: string | null;
  newest: { text: string; etag: string };
  /** The gate's report on the text; undefined until it is known. */
  preview: PreviewedContract | undefined;
  onDone: (done: Submission | null) => void;
}

function WorkBar({ name, work, file, newest, preview, onDone }: BarProps) {
  const client = useQueryClient();
  const { text, base, history } = work;
  const [hold, setHold] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const submit = async () => {
    setPending(true);
    setError(null);
    onDone(null);
    try {
      const header = base.etag ? { "If-Match": base.etag } : {};
      const outcome = await unwrap(api.POST("/v1/contracts", { params: { header }, body: { source: text, hold } }));
      await client.invalidateQueries();
      work.setBase({ text, etag: renewedTag(client.getQueryData(["contract", name]), text, outcome) ?? base.etag });
      // A created contract is no longer work in progress: the next one begins empty.
      if (name === "" && outcome.verdict === "published") work.restart(newest);
      // The link to a trial leads to one of its tools. Without a tool, it is chosen there.
      const live = outcome.draft ? null : await client.fetchQuery(contractQuery(outcome.contract)).catch(() => null);
      onDone({ submitted: outcome, tool: firstToTry((live && documentOf(live)?.tools) ?? []) });
    } catch (caught) {
      setError(caught);
      void client.invalidateQueries({ queryKey: ["contract", name] });
    }
    setPending(false);
  };
  const faults = error instanceof ProblemError ? error.problem.problems : [];
  return (
    <div className="stack">
      {file !== null && (
        <div className="note warn stack tight">
          <p>
            This contract comes from the file <code>{file}</code> and is changed there, so it is not submitted here. Work on it as on any other, then put the text
            into that file.
          </p>
          <div className="row">
            <CopyAction text={text} label="Copy the text" />
          </div>
        </div>
      )}
      <div className="row ends work-bar">
        <div className="row">
          <Action onPress={work.undo} isDisabled={history.past.length === 0}>
            Undo
          </Action>
          <Action onPress={work.redo} isDisabled={history.future.length === 0}>
            Redo
          </Action>
          {work.isChanged && (
            <>
              <Action kind="plain" onPress={() => work.restart(newest)}>
                Discard changes
              </Action>
              <span className="soft small">Not submitted yet; this browser keeps it.</span>
            </>
          )}
        </div>
        {file === null && (
          <div className="row">
            {work.isChanged && preview?.class && preview.class !== "identical" && <ClassBadge name={preview.class} />}
            <CheckField label="Hold it for review in any case" value={hold} onChange={setHold} />
            <GuardedAction needs="editor" kind="main" onPress={() => void submit()} isPending={isPending}>
              Submit
            </GuardedAction>
          </div>
        )}
      </div>
      <section className="stack" aria-label="Refusal" aria-live="polite">
        {error != null && faults.length === 0 && <ProblemNote error={error} />}
        {faults.length > 0 && (
          <div className="note bad stack tight" role="alert">
            <strong>{asProblem(error).detail}</strong>
            <FaultList faults={faults} />
          </div>
        )}
      </section>
    </div>
  );
}

/** Returns the value that has not changed for a while. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(setSettled, ms, value);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

function Outcome({ done }: { done: Submission | null }) {
  const box = useRef<HTMLElement>(null);
  // The button that submitted a new contract is that of another work now.
  useEffect(() => {
    if (done && document.activeElement === document.body) box.current?.focus();
  }, [done]);
  return (
    <section className="stack" aria-label="Outcome" aria-live="polite" tabIndex={-1} ref={box}>
      {done && <OutcomeNote {...done} />}
    </section>
  );
}

function OutcomeNote({ submitted, tool }: Submission) {
  const report = submitted.report as unknown as DiffReport | null;
  const isHeld = submitted.verdict === "held";
  return (
    <div className="stack">
      <div className={`note ${isHeld ? "warn" : "good"} stack tight`}>
        <div className="row">
          <Badge tone={isHeld ? "warn" : "good"}>{submitted.verdict}</Badge>
          {report && <ClassBadge name={report.class} />}
        </div>
        {submitted.draft ? <HeldWords submitted={submitted} draft={submitted.draft} isBreaking={report?.breaking === true} /> : <LiveWords submitted={submitted} tool={tool} />}
      </div>
      {report && report.class !== "first" && <Difference report={report} />}
    </div>
  );
}

function HeldWords({ submitted, draft, isBreaking }: { submitted: Submitted; draft: string; isBreaking: boolean }) {
  const { contract, needs } = submitted;
  const why = isBreaking ? "It breaks callers, so it was not published." : "It was not published yet.";
  const address = draftAddress({ contract, id: draft });
  if (needs && mayDo(needs)) {
    return (
      <p>
        {why} You are an {currentRole()}: <Link href={address}>look at it and publish it</Link>.
      </p>
    );
  }
  return (
    <p>
      {why} An {needs} publishes it: <Link href={address}>look at the draft</Link>.
    </p>
  );
}

function LiveWords({ submitted: { contract, version }, tool }: Submission) {
  return (
    <p>
      <Link href={`/contracts/${encodeURIComponent(contract)}`}>
        {contract}@{version}
      </Link>{" "}
      is live. Next: <Link href={tool ? trialAddress(tool) : "/try"}>Try it</Link>, <Link href={tool ? `/tools?tool=${encodeURIComponent(tool.name)}` : "/tools"}>Connect a client</Link>, or{" "}
      <Link href={`/keys?make=yes&contract=${encodeURIComponent(contract)}`}>make a key</Link> for an agent.
    </p>
  );
}
