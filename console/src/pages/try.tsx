import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../api/client";
import { useConfiguration, useKeys, usePolicies, useTools, type ServedTool } from "../api/queries";
import type { Json, Tried } from "../api/shapes";
import { setAddressValues, useAddressValue } from "../location";
import { Action, GuardedAction, RoleNote } from "../parts/action";
import { DecisionNote } from "../parts/decision";
import { ChoiceField, FieldFrame } from "../parts/fields";
import { PageHead } from "../parts/page";
import { Stages } from "../parts/stages";
import { Empty, ProblemNote, Skeleton } from "../parts/states";
import { Badge, CodeBlock, CopyAction, pretty } from "../parts/words";
import { passedPolicies } from "../policy";
import { isRecord, parseExact } from "../schema/exact";
import { SchemaForm } from "../schema/form";
import { requiredOf } from "../schema/model";
import { RecordTable } from "../schema/records";
import { CALL_KEYS } from "../platform";
import { sampleArguments } from "../schema/sample";
import { mayDo } from "../session";
import { mcpAddress } from "../snippets";
import { copiedCalls } from "./call-copies";
import { statusOf } from "./key-status";
import { callError, faultsOf, nextCursor, readTried, resultTable, trialBody } from "./trial";
import { ReachBadge, writes } from "./tools";

export function TryPage() {
  const { tools, isPending, error, refetch } = useTools();
  const keys = useKeys();
  const [name] = useAddressValue("tool");
  const [agent, setAgent] = useAddressValue("agent");
  const served = tools.find(({ tool }) => tool.name === name);
  const valid = (keys.data ?? []).filter((key) => statusOf(key, Date.now()) === "valid").map((key) => key.agent);
  // The address may name an agent without a key.
  const agents = [...new Set([...valid, ...(agent ? [agent] : [])])];
  const caller = agent || (agents[0] ?? "");
  return (
    <>
      <PageHead title="Try it">
        A call as an agent would make it: the same checks, limits and record. The trail also names who tried it.
      </PageHead>
      {error != null && <ProblemNote error={error} retry={refetch} />}
      {isPending && tools.length === 0 ? (
        <Skeleton />
      ) : tools.length === 0 && !error ? (
        <Empty title="No tool is served">
          <p>
            Publish a contract first: <Link href="/contracts">see what there is</Link>.
          </p>
        </Empty>
      ) : (
        <div className="stack">
          {!mayDo("editor") && (
            <p className="note">
              A trial is a real call: <RoleNote needs="editor" />.
            </p>
          )}
          <div className="filters">
            <ChoiceField
              label="Tool"
              value={name}
              none="Choose a tool"
              onChange={(tool) => setAddressValues({ tool, arguments: "" })}
              options={tools.map(({ tool, contract }) => ({ value: tool.name, text: `${tool.name} (${contract})` }))}
            />
            <ChoiceField label="As the agent" value={caller} none={agents.length === 0 ? "local" : undefined} onChange={setAgent} options={agents} />
          </div>
          {served ? <Trial key={name} served={served} agent={caller} /> : <Empty title={name ? `No tool is called ${name} now` : "Choose a tool"} />}
        </div>
      )}
    </>
  );
}

function initialArguments(): { [name: string]: Json } {
  try {
    const stored = new URLSearchParams(location.hash.split("?")[1] ?? "").get("arguments");
    const value: Json = stored ? parseExact(stored) : {};
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** Longer arguments are kept out of the address. */
const ADDRESS_MAX = 1500;

function Trial({ served, agent }: { served: ServedTool; agent: string }) {
  const client = useQueryClient();
  const configuration = useConfiguration();
  const { tool } = served;
  const [value, setValue] = useState<Json>(initialArguments);
  const [raw, setRaw] = useState<string | null>(null);
  const [tried, setTried] = useState<Tried | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [running, setRunning] = useState<"check" | "call" | null>(null);
  const text = raw ?? JSON.stringify(value);
  const faults = useMemo(() => (tried ? faultsOf(tried) : new Map()), [tried]);
  useEffect(() => {
    const known = text === "{}" || text.length > ADDRESS_MAX ? "" : text;
    setAddressValues({ arguments: known });
  }, [text]);
  const run = async (isDry: boolean, sent = text) => {
    setRunning(isDry ? "check" : "call");
    setError(null);
    try {
      const body = trialBody(tool.name, agent, isDry, sent);
      const serialized = { body: body as never, bodySerializer: (given: unknown) => given as string };
      setTried(readTried(await unwrap(api.POST("/v1/calls", { ...serialized, parseAs: "text" }))));
    } catch (caught) {
      setTried(null);
      setError(caught);
    }
    setRunning(null);
    void client.invalidateQueries({ queryKey: ["audit"] });
  };
  const result = useRef<HTMLElement>(null);
  useEffect(() => {
    if (tried || error) result.current?.scrollIntoView({ block: "nearest" });
  }, [tried, error]);
  const needs = writes(tool) ? "operator" : "editor";
  const next = tried?.ran && !tried.is_error ? nextCursor(tried) : null;
  const turnPage = (cursor: string) => {
    const turned = { ...(isRecord(value) ? value : {}), cursor };
    setValue(turned);
    void run(false, JSON.stringify(turned));
  };
  const onKey = (event: React.KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.metaKey || event.ctrlKey)) return;
    if (!event.repeat && running === null && mayDo(needs)) void run(false);
  };
  return (
    <div className="columns trial" onKeyDown={onKey}>
      <section className="card stack" aria-label="Arguments">
        <div className="row ends">
          <h2 className="row">
            Arguments <ReachBadge tool={tool} />
          </h2>
          <span className="row">
            {raw === null && text === "{}" && requiredOf(tool.inputSchema).length > 0 && (
              <Action kind="plain compact" onPress={() => setValue(sampleArguments(tool.inputSchema))}>
                Fill in an example
              </Action>
            )}
            <InputKind raw={raw} value={value} setRaw={setRaw} setValue={setValue} />
          </span>
        </div>
        <p className="soft">{tool.description}</p>
        {raw === null ? (
          <SchemaForm schema={tool.inputSchema} value={value} onChange={setValue} context={{ root: tool.inputSchema, faults }} />
        ) : (
          <FieldFrame label="Arguments as JSON" help="They are sent as they are typed.">
            {(ids) => <textarea {...ids} rows={14} value={raw} spellCheck={false} onChange={(event) => setRaw(event.target.value)} />}
          </FieldFrame>
        )}
        <div className="row trial-acts">
          <GuardedAction needs={needs} kind={writes(tool) ? "danger" : "main"} isPending={running === "call"} isDisabled={running === "check"} onPress={() => void run(false)}>
            {writes(tool) ? `Call: it writes to ${served.contract}` : "Call"}
          </GuardedAction>
          <GuardedAction needs="editor" isPending={running === "check"} isDisabled={running === "call"} onPress={() => void run(true)}>
            Check
          </GuardedAction>
        </div>
        <p className="soft small">{CALL_KEYS} calls. Check validates the arguments; it asks no source and changes nothing.</p>
        {configuration.data && (
          <div className="row" role="group" aria-label="Copy this call">
            <span className="soft small">Copy this call for</span>
            {copiedCalls({ url: mcpAddress(configuration.data), tool: tool.name, argumentsText: text, needsKey: agent !== "" || configuration.data.identity.required }).map((copied) => (
              <CopyAction key={copied.name} label={copied.name} text={copied.text} />
            ))}
          </div>
        )}
      </section>
      <section className="stack" aria-label="Result" aria-live="polite" ref={result}>
        {error != null && <ProblemNote error={error} />}
        {next !== null && raw === null && (
          <div>
            <Action isDisabled={running !== null} onPress={() => turnPage(next)}>
              Next page
            </Action>
          </div>
        )}
        {tried ? (
          <Result tried={tried} />
        ) : (
          !error && (
            <Empty title="No result yet">
              <p>
                Press <em>Call</em>, or <em>Check</em> to see whether the arguments are valid. The result appears here, with the time of each stage and its receipt.
              </p>
            </Empty>
          )
        )}
      </section>
    </div>
  );
}

function InputKind({ raw, value, setRaw, setValue }: {
  raw: string | null;
  value: Json;
  setRaw: (raw: string | null) => void;
  setValue: (value: Json) => void;
}) {
  const [isBad, setBad] = useState(false);
  const toForm = () => {
    try {
      setValue(parseExact(raw ?? "{}"));
      setRaw(null);
      setBad(false);
    } catch {
      setBad(true);
    }
  };
  return (
    <span className="row">
      {isBad && <span className="fault small">not JSON</span>}
      <button type="button" className="button plain compact" onClick={() => (raw === null ? setRaw(pretty(value)) : toForm())}>
        {raw === null ? "As JSON" : "As a form"}
      </button>
    </span>
  );
}

function Result({ tried }: { tried: Tried }) {
  const content = tried.structured_content as unknown as Json;
  const table = tried.is_error ? null : resultTable(content);
  const [view, setView] = useAddressValue("view");
  const views = [...(table ? ["table"] : []), "text", "structured", "wire"];
  const shown = views.includes(view) ? view : views[0];
  const error = callError(tried);
  const policies = usePolicies().data?.policies ?? [];
  return (
    <div className="stack">
      <div className="row ends">
        <h2 className="row">
          {tried.ran ? "Result" : "Check"}
          <Badge tone={tried.is_error ? "bad" : "good"}>{tried.is_error ? (error?.code ?? "error") : tried.ran ? "ok" : "valid"}</Badge>
          {passedPolicies(tried, policies.length) && <Badge>allowed by policies</Badge>}
        </h2>
        <div className="row" role="group" aria-label="How the result is shown">
          {views.map((name) => (
            <button key={name} type="button" className={`button compact ${shown === name ? "main" : ""}`} aria-pressed={shown === name} onClick={() => setView(name)}>
              {name}
            </button>
          ))}
        </div>
      </div>
      {tried.policy && <DecisionNote decision={tried.policy} policies={policies} />}
      {shown === "table" && table && <RecordTable label="Records" table={table} />}
      {shown === "text" && <CodeBlock text={tried.text} wraps label="Text" />}
      {shown === "structured" && <CodeBlock text={pretty(content)} label="Structured content" />}
      {shown === "wire" && <CodeBlock text={pretty(tried.wire as unknown as Json)} label="The result as a client gets it" />}
      <Stages stages={tried.stages_ms} total={tried.ms} />
      {tried.receipt && (
        <dl className="facts small">
          <dt>Receipt</dt>
          <dd className="row">
            <code>{tried.receipt.split(":").slice(0, 2).join(":")}</code>
            <CopyAction text={tried.receipt} />
            {tried.call_id && <Link href={`/audit?call=${encodeURIComponent(tried.call_id)}`}>Open in audit</Link>}
          </dd>
          <dt>Agent</dt>
          <dd>{tried.agent}</dd>
        </dl>
      )}
    </div>
  );
}
