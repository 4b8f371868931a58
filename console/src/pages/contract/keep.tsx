// Keeping the version that a breaking change replaces: until when, and what converts its calls.
import type { KeepingView } from "../../api/shapes";
import { CheckField, FieldFrame, TextField } from "../../parts/fields";
import { CodeBlock, pretty } from "../../parts/words";
import { readKeep, type KeepChoice } from "./keep-choice";

interface KeepProps {
  keeping: KeepingView;
  choice: KeepChoice;
  onChange: (choice: KeepChoice) => void;
}

export function KeepFields({ keeping, choice, onChange }: KeepProps) {
  const { fault } = readKeep(choice, keeping);
  return (
    <fieldset className="stack tight">
      <legend>The version before</legend>
      <CheckField
        label={`Keep ${keeping.version} for agents that are pinned to it`}
        value={choice.isKept}
        onChange={(isKept) => onChange({ ...choice, isKept })}
      />
      {choice.isKept && (
        <>
          <LastDayField value={choice.lastDay} onChange={(lastDay) => onChange({ ...choice, lastDay })} />
          {choice.shim.trim() === "" && <Suggested keeping={keeping} />}
          <details open={keeping.shim == null || undefined}>
            <summary>Another shim</summary>
            <FieldFrame label="Shim as JSON" help="What converts its calls to the live version, and results back." fault={fault}>
              {(ids) => (
                <textarea {...ids} rows={6} spellCheck={false} value={choice.shim} onChange={(event) => onChange({ ...choice, shim: event.target.value })} />
              )}
            </FieldFrame>
          </details>
        </>
      )}
      <LostShims keeping={keeping} />
    </fieldset>
  );
}

/** The versions that are kept already, and whose calls no shim would convert any more. */
function LostShims({ keeping }: { keeping: KeepingView }) {
  const lost = keeping.beside.filter((next) => next.shim == null);
  return lost.map((next) => (
    <p key={next.version} className="note warn small">
      {next.version}, which is kept already, would lose its shim and continue with its own binding, unless another shim of {keeping.version} carries
      it on: {next.missing}.
    </p>
  ));
}

export function LastDayField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return <TextField type="date" label="Last day" value={value} onChange={onChange} help="It ends with this day, in UTC. Left empty: when an operator ends it." />;
}

/** What the difference suggests, or the first place that it does not convert. */
function Suggested({ keeping }: { keeping: KeepingView }) {
  if (keeping.shim != null) {
    return (
      <details>
        <summary>The change suggests a shim, which converts every call</summary>
        <CodeBlock text={pretty(keeping.shim as never)} label="Suggested shim" />
      </details>
    );
  }
  return (
    <p className="note warn small">
      No shim that the change suggests converts every call: {keeping.missing}.{" "}
      {keeping.needs_shim ? "It cannot be kept without a shim." : "Without a shim it continues with its own binding, as long as its source has what the binding names."}
    </p>
  );
}
