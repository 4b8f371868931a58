import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../api/client";
import { asProblem, ProblemError, type Fault } from "../api/problem";
import { useContract, useContracts, usePreview } from "../api/queries";
import type { DiffReport, Submitted } from "../api/shapes";
import { useAddressValue } from "../location";
import { Action, GuardedAction } from "../parts/action";
import { CheckField, ChoiceField } from "../parts/fields";
import { PageHead } from "../parts/page";
import { FaultList, Loaded, ProblemNote, Skeleton } from "../parts/states";
import { Badge, ClassBadge, CopyAction } from "../parts/words";
import { mayDo } from "../session";
import { Preview } from "./builder/preview";
import { Difference } from "./contract/difference";
import { draftAddress } from "./drafts";

const Editor = lazy(() => import("../parts/editor"));

/** One list, so that the editor sees whether it changed. */
const NONE: Fault[] = [];

const START = `contract: prices
title: Prices
collections:
  prices:
    adapter: sheet
    settings: { connection: files, path: prices.csv }
    columns: [product, price]
tools:
  - tool: list_prices
    description: Lists products with their price.
    verb: list
    collection: prices
    fields:
      - { name: product, type: text, match: contains, help: "Part of the product's name." }
`;

/** The time without a key after which the text is previewed. */
const PREVIEW_MS = 300;

/** Work that was not submitted survives a reload, in this tab alone. */
const keptUnder = (name: string) => `weir.work.${name}`;

export function BuilderPage() {
  const contracts = useContracts();
  const [name, setName] = useAddressValue("contract");
  return (
    <>
      <PageHead title="Builder">Write a contract, see what it would be, and submit it. What breaks callers is held as a draft; nothing is published behind anyone's back.</PageHead>
      <Loaded query={contracts}>
        {({ contracts: all }) => {
          const chosen = all.find((contract) => contract.name === name);
          return (
            <div className="stack">
              <div className="filters">
                <ChoiceField label="Contract" value={name} onChange={setName} none="A new one" options={all.filter(({ origin }) => origin === "api" || origin === "file").map((contract) => contract.name)} />
              </div>
              {chosen?.origin === "file" && (
                <div className="note warn">
                  <p>
                    This contract comes from a file in <code>{chosen.owner}</code>, and is changed there. The text can be edited here, then copied into that
                    file; a submission is refused.
                  </p>
                </div>
              )}
              {name === "" ? <Work key="new" name="" text={START} etag="" isFile={false} /> : <OfContract key={name} name={name} isFile={chosen?.origin === "file"} />}
            </div>
          );
        }}
      </Loaded>
    </>
  );
}

function OfContract({ name, isFile }: { name: string; isFile: boolean }) {
  const contract = useContract(name);
  return <Loaded query={contract}>{({ source, etag }) => <Work name={name} text={source ?? ""} etag={etag} isFile={isFile} />}</Loaded>;
}

/** What the work on a contract began with: a submission rests on it, so that it is kept with the text. */
interface WorkBase {
  text: string;
  etag: string;
}

function readKept(name: string): { text: string; base: WorkBase } | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(keptUnder(name)) ?? "null");
    return typeof kept?.base?.text === "string" ? kept : null;
  } catch {
    // Another program kept it.
    return null;
  }
}

/** Returns the tag of the contract if it is as this submission left it. Where another followed, the next one has to be refused. */
function renewedTag(now: { source?: string | null; etag: string; drafts: { id: string }[] } | undefined, text: string, { draft }: Submitted): string | null {
  const isOwn = draft ? now?.drafts[0]?.id === draft : now?.source === text;
  return isOwn ? (now?.etag ?? null) : null;
}

/** `text` and `etag` are those of now; the work is compared with those that it began with. */
function Work({ name, text: newest, etag, isFile }: { name: string; text: string; etag: string; isFile: boolean }) {
  const client = useQueryClient();
  const [kept] = useState(() => readKept(name));
  const [base, setBase] = useState<WorkBase>(kept?.base ?? { text: newest, etag });
  const original = base.text;
  const [text, setText] = useState(kept?.text ?? original);
  const [hold, setHold] = useState(false);
  const [submitted, setSubmitted] = useState<Submitted | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const [version, setVersion] = useState(0);
  const settled = useSettled(text, PREVIEW_MS);
  const preview = usePreview(settled, mayDo("editor"));
  useEffect(() => {
    if (text === original) sessionStorage.removeItem(keptUnder(name));
    else sessionStorage.setItem(keptUnder(name), JSON.stringify({ text, base }));
  }, [text, original, base, name]);
  const submit = async () => {
    setPending(true);
    setError(null);
    setSubmitted(null);
    try {
      const header = base.etag ? { "If-Match": base.etag } : {};
      const outcome = await unwrap(api.POST("/v1/contracts", { params: { header }, body: { source: text, hold } }));
      setSubmitted(outcome);
      await client.invalidateQueries();
      setBase({ text, etag: renewedTag(client.getQueryData(["contract", name]), text, outcome) ?? base.etag });
    } catch (caught) {
      setError(caught);
      void client.invalidateQueries({ queryKey: ["contract", name] });
    }
    setPending(false);
  };
  const restore = () => {
    setBase({ text: newest, etag });
    setText(newest);
    setVersion(version + 1);
  };
  const faults = error instanceof ProblemError ? error.problem.problems : [];
  return (
    <div className="columns">
      <section className="stack tight" aria-label="Text">
        <Suspense fallback={<Skeleton lines={12} />}>
          <Editor key={version} text={text} onChange={setText} faults={preview.data?.problems ?? NONE} label="Contract as YAML" />
        </Suspense>
        <div className="row">
          <GuardedAction needs="editor" kind="main" onPress={() => void submit()} isPending={isPending} isDisabled={isFile}>
            Submit
          </GuardedAction>
          <CheckField label="Hold it for review in any case" value={hold} onChange={setHold} />
          {text !== original && <Action onPress={restore}>Undo all</Action>}
          <CopyAction text={text} label="Copy the text" />
        </div>
        {text !== original && <p className="soft small">Not submitted yet. This tab keeps it.</p>}
      </section>
      <div className="stack">
        <section className="stack" aria-label="Outcome" aria-live="polite">
          {error != null && faults.length === 0 && <ProblemNote error={error} />}
          {faults.length > 0 && (
            <div className="note bad stack tight" role="alert">
              <strong>{asProblem(error).detail}</strong>
              <FaultList faults={faults} />
            </div>
          )}
          {submitted && <Outcome submitted={submitted} />}
        </section>
        <Preview query={preview} isBehind={settled !== text || preview.isFetching} />
      </div>
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

function Outcome({ submitted }: { submitted: Submitted }) {
  const report = submitted.report as unknown as DiffReport | null;
  return (
    <div className="stack">
      <div className={`note ${submitted.verdict === "held" ? "warn" : "good"} stack tight`}>
        <div className="row">
          <Badge tone={submitted.verdict === "held" ? "warn" : "good"}>{submitted.verdict}</Badge>
          {report && <ClassBadge name={report.class} />}
        </div>
        {submitted.draft ? (
          <p>
            It waits for an {submitted.needs}: <Link href={draftAddress({ contract: submitted.contract, id: submitted.draft })}>look at the draft</Link>.
          </p>
        ) : (
          <p>
            <Link href={`/contracts/${encodeURIComponent(submitted.contract)}`}>
              {submitted.contract}@{submitted.version}
            </Link>{" "}
            is live.
          </p>
        )}
      </div>
      {report && <Difference report={report} />}
    </div>
  );
}
