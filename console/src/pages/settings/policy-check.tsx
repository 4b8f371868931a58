// What the policies in force decide about one call. Nothing is called.
import { useState, type FormEvent } from "react";
import { api, unwrap } from "../../api/client";
import { useTools } from "../../api/queries";
import type { PolicyCaseResult } from "../../api/shapes";
import { useAttempt } from "../../parts/attempt";
import { Action } from "../../parts/action";
import { ChoiceField, FieldFrame, TextField } from "../../parts/fields";
import { ProblemNote } from "../../parts/states";
import { Badge, type Tone } from "../../parts/words";
import { isRecord, parseExact } from "../../schema/exact";

const WORDS: Record<PolicyCaseResult["found"], { tone: Tone; text: string }> = {
  allow: { tone: "good", text: "It runs." },
  deny: { tone: "bad", text: "It is refused: forbidden." },
  hidden: { tone: "warn", text: "The tool does not exist for this caller." },
  audit: { tone: "warn", text: "It runs, and the trail records that it would be refused." },
};

function readArguments(text: string) {
  try {
    const value = parseExact(text.trim() === "" ? "{}" : text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

export function PolicyCheck() {
  const { tools } = useTools();
  const [kind, setKind] = useState("agent");
  const [caller, setCaller] = useState("");
  const [groups, setGroups] = useState("");
  const [tool, setTool] = useState("");
  const [text, setText] = useState("{}");
  const [found, setFound] = useState<PolicyCaseResult | null>(null);
  const { error, isPending, attempt } = useAttempt();
  const args = readArguments(text);
  const check = async (event: FormEvent) => {
    event.preventDefault();
    if (isPending || args === null) return;
    setFound(null);
    const named = groups.split(",").map((group) => group.trim()).filter(Boolean);
    await attempt(async () => {
      const one = { [kind]: caller, groups: named, tool, args, expect: "allow" };
      const [first] = await unwrap(api.POST("/v1/policy/test", { body: { cases: [one as never] } }));
      setFound(first ?? null);
    });
  };
  return (
    <details className="stack tight">
      <summary>Check a call</summary>
      <form className="card stack" aria-label="Check a call" onSubmit={(event) => void check(event)}>
        <p className="soft">Says what the policies in force decide of a call. Nothing is called, and what the caller's key allows is not asked.</p>
        <div className="columns">
          <ChoiceField label="Caller" value={kind} onChange={setKind} options={[{ value: "agent", text: "an agent with a key" }, { value: "user", text: "a person with a token" }]} />
          <TextField label="Name" value={caller} onChange={setCaller} required help="The agent, or the subject of the token." />
        </div>
        <TextField label="Groups" value={groups} onChange={setGroups} help="With commas between them." />
        <ChoiceField label="Tool" value={tool} onChange={setTool} none="Choose a tool" options={tools.map((served) => served.tool.name)} />
        <FieldFrame label="Arguments as JSON" fault={args === null ? "This is not a JSON object." : undefined}>
          {(ids) => <textarea {...ids} rows={4} value={text} spellCheck={false} onChange={(event) => setText(event.target.value)} />}
        </FieldFrame>
        {error != null && <ProblemNote error={error} />}
        <div>
          <Action kind="main" type="submit" isPending={isPending} isDisabled={caller === "" || tool === "" || args === null}>
            Check
          </Action>
        </div>
        {found && <Decision found={found} />}
      </form>
    </details>
  );
}

function Decision({ found }: { found: PolicyCaseResult }) {
  const { tone, text } = WORDS[found.found];
  return (
    <div className={`note ${tone} stack tight`} role="status">
      <p className="row">
        <Badge tone={tone}>{found.found}</Badge> {text}
      </p>
      {found.policies.length > 0 && (
        <p className="small">
          By <code>{found.policies.join(", ")}</code>
          {found.message && <>. The caller reads: {found.message}</>}
        </p>
      )}
    </div>
  );
}
