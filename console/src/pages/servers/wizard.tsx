// Adds another server: what was pasted, what it offers, and the text that adds it. Adding itself is done on the machine of
// the gateway, by a person who may write `weir.toml`.
import { useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../../api/client";
import type { ContractDocument, Finding, UpstreamOffer, UpstreamView } from "../../api/shapes";
import { setAddressValues } from "../../location";
import { Action, GuardedAction } from "../../parts/action";
import { ChoiceField, FieldFrame, TextField } from "../../parts/fields";
import { ProblemNote } from "../../parts/states";
import { CodeBlock, CopyAction, count, Digest } from "../../parts/words";
import { Findings } from "../contract/difference";
import { addBlock, addSection, hasReference, isSecretUrl, neededVariables, writtenHeader } from "./added";
import { EVERYTHING, overlayFile, overlayStart, overlayText, type ToolChoice } from "./choice";
import { isServerName, readServers, suggestName, type NamedValue, type PastedServer } from "./pasted";
import { ToolChoiceStep } from "./tool-choice";

/** `folder` is that of `weir.toml` on the gateway's machine. */
export function ServerWizard({ all, folder }: { all: UpstreamView[]; folder: string }) {
  const [taken] = useState(() => all.map(({ name }) => name));
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState("");
  const found = readServers(text);
  const servers = typeof found === "string" ? [] : found;
  const server = servers.find(({ name }) => name === chosen) ?? servers[0];
  return (
    <div className="stack wide">
      <section className="stack" aria-label="The server">
        <FieldFrame
          label="A URL, a command line, or the configuration of a client"
          help="Such as https://mcp.example.org/mcp, uvx mcp-server-time, or the JSON under mcpServers. It stays in this page."
          fault={typeof found === "string" && found}
        >
          {(ids) => <textarea {...ids} rows={4} value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} autoComplete="off" />}
        </FieldFrame>
        {servers.length > 1 && server && <ChoiceField label="Which server" value={server.name} onChange={setChosen} options={servers.map(({ name }) => name)} />}
      </section>
      {server && <ServerSteps key={`${server.name} ${text}`} pasted={server} all={all} taken={taken} folder={folder} />}
    </div>
  );
}

function ServerSteps({ pasted, all, taken, folder }: { pasted: PastedServer; all: UpstreamView[]; taken: string[]; folder: string }) {
  const [typed, setTyped] = useState<string | null>(null);
  const [suggested, setSuggested] = useState(pasted.name);
  const name = typed ?? suggested;
  const [headers, setHeaders] = useState(pasted.headers);
  const [choice, setChoice] = useState(EVERYTHING);
  const server = { ...pasted, name, headers: headers.filter((header) => header.name.trim() !== "") };
  const isTaken = taken.includes(name);
  const isReady = isServerName(name) && !isTaken;
  const fault = isTaken ? "A server has this name already." : name !== "" && !isServerName(name) ? "A lowercase letter, then up to 31 of a-z, 0-9 and -." : undefined;
  return (
    <>
      <section className="stack" aria-label="Its name and credentials">
        <TextField label="What it is called here" value={name} onChange={setTyped} fault={fault} help={isReady ? `The names of its tools begin with ${name}_ then.` : undefined} />
        {server.url && <HeaderFields server={name} headers={headers} onChange={setHeaders} />}
      </section>
      {server.url ? (
        <ServerLook server={server} isReady={isReady} choice={choice} onChoice={setChoice} suggest={typed === null && !pasted.isNamed ? (own) => freeSuggestion(own, taken, setSuggested) : undefined} />
      ) : (
        <p className="note">
          It is started by a command. A page starts no program on the gateway's machine, so what it offers is shown by the line below, before you agree to it.
        </p>
      )}
      {isReady && <AddTexts server={server} choice={choice} folder={folder} added={all.find((one) => one.name === name)} />}
    </>
  );
}

/** Returns the name that a server gives itself, if it can be used, and suggests it. */
function freeSuggestion(own: string, taken: string[], suggest: (name: string) => void): string | null {
  const name = suggestName(own);
  if (name === null || taken.includes(name)) return null;
  suggest(name);
  return name;
}

function HeaderFields({ server, headers, onChange }: { server: string; headers: NamedValue[]; onChange: (headers: NamedValue[]) => void }) {
  const change = (at: number, next: Partial<NamedValue>) => onChange(headers.map((header, index) => (index === at ? { ...header, ...next } : header)));
  return (
    <fieldset className="stack tight">
      <legend>Headers</legend>
      <p className="soft small">Values are sent to the server for this look and are not stored. The texts below have a reference in their place.</p>
      {headers.map((header, index) => (
        <div key={index} className="list-item">
          <div className="columns">
            <TextField label="Header" value={header.name} onChange={(next) => change(index, { name: next })} placeholder="Authorization" />
            <TextField
              label={`Value of ${header.name || "it"}`}
              type="password"
              value={hasReference(header.value) ? "" : header.value}
              onChange={(value) => change(index, { value })}
              placeholder={/^authorization$/i.test(header.name) ? "Bearer …" : undefined}
              help={header.name && header.value ? <>Written down as <code>{writtenHeader(server, header).value}</code></> : undefined}
            />
          </div>
          <Action kind="compact" label={`Without the header ${header.name}`} onPress={() => onChange(headers.filter((_, other) => other !== index))}>
            Remove
          </Action>
        </div>
      ))}
      <div>
        <Action kind="compact" onPress={() => onChange([...headers, { name: headers.length === 0 ? "Authorization" : "", value: "" }])}>
          Add a header
        </Action>
      </div>
    </fieldset>
  );
}

interface LookProps {
  server: PastedServer;
  isReady: boolean;
  choice: ToolChoice;
  onChoice: (choice: ToolChoice) => void;
  /** Takes the name that the server gives itself, and returns the one that is to be used; undefined where a person named it. */
  suggest?: (own: string) => string | null;
}

/** Asks a server for its offer, and which part of it a choice would publish. Nothing is added. */
function ServerLook({ server, isReady, choice, onChoice, suggest }: LookProps) {
  const [offer, setOffer] = useState<UpstreamOffer | null>(null);
  const [checked, setChecked] = useState<UpstreamOffer | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [pending, setPending] = useState<"offer" | "choice" | null>(null);
  const { name, url } = server;
  const look = async (overlay: string | null) => {
    setPending(overlay === null ? "offer" : "choice");
    setError(null);
    setChecked(null);
    if (overlay === null) setOffer(null);
    try {
      const sent = server.headers.filter(({ value }) => value !== "" && !hasReference(value));
      const headers = Object.fromEntries(sent.map((header) => [header.name.trim(), header.value]));
      const ask = (as: string) => unwrap(api.POST("/v1/upstreams/look", { body: { name: as, url, headers, ...(overlay !== null && { overlay }) } }));
      let found = await ask(name);
      if (overlay === null) {
        const own = suggest?.(ownName(found)) ?? name;
        // The names of its tools begin with it, and lint knows which names are taken.
        if (own !== name) found = await ask(own);
        setOffer(found);
        onChoice(EVERYTHING);
      } else setChecked(found);
    } catch (caught) {
      setError(caught);
    }
    setPending(null);
  };
  const isOld = offer !== null && offer.name !== name;
  const choose = (next: ToolChoice) => {
    setChecked(null);
    onChoice(next);
  };
  const check = () => look(overlayText(name, choice));
  return (
    <>
      <section className="stack" aria-label="What it offers">
        <div className="row">
          <GuardedAction needs="operator" kind="main" isDisabled={!isReady} isPending={pending === "offer"} onPress={() => void look(null)}>
            Look at it
          </GuardedAction>
          {!offer && !error && pending === null && <span className="soft small">Nothing is added by that.</span>}
        </div>
        {pending !== null && <p role="status">The server is asked, for at most 30 seconds…</p>}
        {error != null && (
          <>
            <ProblemNote error={error} retry={() => void (offer ? check() : look(null))} />
            {!offer && <p className="soft">If it requires a credential, add the header above. It can be added without a look too: it is looked at again before you agree.</p>}
          </>
        )}
        {isOld && <p className="note">It was looked at as {offer.name}. Look again: names, lint and the fingerprint depend on what it is called.</p>}
        {offer && <Offer offer={offer} checked={checked} choice={choice} />}
      </section>
      {offer && offer.tools.length > 0 && (
        <ToolChoiceStep offer={offer} prefix={`${name}_`} choice={choice} onChange={choose} onCheck={() => void check()} isPending={pending === "choice"} checked={checked} />
      )}
    </>
  );
}

const ownName = ({ server }: UpstreamOffer) => {
  const { name, title } = (server ?? {}) as { name?: string; title?: string };
  return name ?? title ?? "";
};

/** Lint of what is taken: of the choice that was checked, or of everything except the tools that are left out. */
function lintOfChoice(offer: UpstreamOffer, checked: UpstreamOffer | null, { left }: ToolChoice): Finding[] {
  if (checked) return checked.lint as unknown as Finding[];
  const out = offer.tools.filter(({ from }) => left.includes(from)).map(({ name }) => name);
  return (offer.lint as unknown as Finding[]).filter(({ tool }) => tool === undefined || !out.includes(tool));
}

function Offer({ offer, checked, choice }: { offer: UpstreamOffer; checked: UpstreamOffer | null; choice: ToolChoice }) {
  const lint = lintOfChoice(offer, checked, choice);
  const { tools, prompts = [], resources = [], resourceTemplates = [] } = offer.document as unknown as ContractDocument;
  const about = offer.server as { name?: string; title?: string; version?: string };
  const others = [
    prompts.length > 0 && count(prompts.length, "prompt"),
    (resources.length || offer.resources) > 0 && count(resources.length || offer.resources, "resource"),
    resourceTemplates.length > 0 && count(resourceTemplates.length, "template"),
  ].filter(Boolean);
  return (
    <div className="stack" role="status">
      <dl className="facts">
        <dt>Name and version</dt>
        <dd>{[about.title ?? about.name ?? "nothing", about.version].filter(Boolean).join(" ")}</dd>
        <dt>It offers</dt>
        <dd>{[count(tools.length, "tool"), ...others].join(", ")}</dd>
        <dt>Costs a model</dt>
        <dd>
          {offer.bytes.toLocaleString("en")} bytes in a list, about {count(offer.tokens, "token")}
        </dd>
        <dt>Fingerprint</dt>
        <dd className="row">
          <Digest text={offer.fingerprint} />
          <CopyAction text={offer.fingerprint} />
        </dd>
      </dl>
      <Lines title="Left out" lines={offer.left_out} />
      <Lines title="Published differently from what it wrote" lines={offer.notes} />
      {offer.instructions && (
        <section className="stack tight" aria-label="Instructions to the model">
          <h3>Instructions to the model</h3>
          <p className="change model-text">{offer.instructions}</p>
          <p className="soft small">
            Agents read this with the list of tools. <code>instructions:</code> in the overlay replaces it.
          </p>
        </section>
      )}
      <section className="stack tight" aria-label="Lint">
        <h3>What a model may misread</h3>
        {lint.length > 0 ? <Findings findings={lint} /> : <p className="soft">Lint finds nothing.</p>}
      </section>
    </div>
  );
}

function AddTexts({ server, choice, folder, added }: { server: PastedServer; choice: ToolChoice; folder: string; added: UpstreamView | undefined }) {
  const overlay = overlayText(server.name, choice);
  const file = overlay === null ? "" : overlayFile(server.name);
  const variables = neededVariables(server);
  if (added) {
    return (
      <div className="note good stack tight" role="status">
        <p>{server.name} was added.</p>
        <div>
          <Action kind="main" onPress={() => setAddressValues({ add: "", server: server.name })}>
            Open it
          </Action>
        </div>
      </div>
    );
  }
  return (
    <section className="stack" aria-label="Adding it">
      <h3>Add it</h3>
      <p>
        Run this on the gateway's machine, in <code>{folder}</code>, the folder of its <code>weir.toml</code>. It shows what the server offers and asks; what you
        agree to is published, and a running gateway applies it. This page shows when it has been added.
        {overlay !== null && (
          <>
            {" "}
            It first saves your choice as <code>{file}</code>.
          </>
        )}
      </p>
      <CodeBlock text={addBlock(server, folder, file, overlay)} wraps label="Command line" />
      {!server.url && <SomeTools server={server} folder={folder} />}
      {variables.length > 0 && (
        <p className="note warn">
          The gateway needs <code>{variables.join(", ")}</code> in its environment; the line names the variable and not its value.
        </p>
      )}
      {isSecretUrl(server.url) && (
        <p className="note warn">
          The URL holds what looks like a secret. Write <code>{"${env:NAME}"}</code> in its place, and put the secret into that variable.
        </p>
      )}
      <details className="stack tight">
        <summary>Or write it into weir.toml</summary>
        <div className="stack tight">
          {overlay !== null && <CodeBlock text={overlay} wraps label="Overlay" />}
          <CodeBlock text={addSection(server, file)} wraps label="Section of weir.toml" />
          <p className="soft small">
            Then <Link href="/settings">reload the configuration</Link>. Its tools wait as a draft until someone publishes it.
          </p>
        </div>
      </details>
    </section>
  );
}

/** A command is not started by a page, so its tools are named by hand. */
function SomeTools({ server, folder }: { server: PastedServer; folder: string }) {
  const file = overlayFile(server.name);
  return (
    <details className="stack tight">
      <summary>Take only some of its tools</summary>
      <div className="stack tight">
        <p>
          Name them in <code>{file}</code>: under <code>take</code> those that agents see, under <code>leave</code> those that they do not. The command shows what is
          chosen before it asks; answer no, change the file and run it again until it is right.
        </p>
        <CodeBlock text={addBlock(server, folder, file, overlayStart(server.name))} wraps label="Command line with a choice" />
      </div>
    </details>
  );
}

export function Lines({ title, lines }: { title: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <section className="stack tight">
      <h3>{title}</h3>
      <ul className="stack tight">
        {lines.map((line) => (
          <li key={line} className="small">
            {line}
          </li>
        ))}
      </ul>
    </section>
  );
}
