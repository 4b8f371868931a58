// The selected part with all its keys, as `/v1/form` has them. Problems are at the key they are of.
import { Fragment, useEffect, useRef, useState } from "react";
import type { FormKey } from "../api/form";
import type { Json } from "../api/shapes";
import { sourceSetting, useRows } from "../api/sources";
import { Action, GuardedAction } from "../parts/action";
import { ChoiceField } from "../parts/fields";
import { useNarrow } from "../parts/narrow";
import { FirstRows } from "../parts/sources";
import { FaultList, Loaded } from "../parts/states";
import { isRecord } from "../schema/exact";
import { useBuilder } from "./context";
import { valueAt, type Change, type Place } from "./edit";
import { AddField, FieldList } from "./field-list";
import { agreeingTypes, changeFiller, changeType, fillerOf, isBound, keysOf, typeNamed, type Filler } from "./field-model";
import { KeyEditor } from "./key-editor";
import { faultsOfPart, pointerOf, toolPlaces, type Part } from "./place";

export function Inspector({ focusCount }: { focusCount: number }) {
  const { root, form, part, faults, verb } = useBuilder();
  const box = useRef<HTMLElement>(null);
  const wanted = useRef(focusCount);
  useEffect(() => {
    if (wanted.current === focusCount) return;
    wanted.current = focusCount;
    const first = box.current?.querySelector<HTMLInputElement>("input, select, textarea");
    first?.focus();
    if (first instanceof HTMLInputElement) first.select();
  }, [focusCount, part]);
  const found = valueAt(root, part.at);
  if (!isRecord(found)) {
    return (
      <section className="card stack inspector" aria-label="Inspector" id="inspector" ref={box}>
        <p className="soft">Choose a part of the contract to see what it may contain.</p>
      </section>
    );
  }
  const { first, more } = keysOf(form, part.kind, found, verb);
  const keys = [...first, ...more].map((key) => key.name);
  const isEmpty = part.kind === "contract" && toolPlaces(root).length === 0;
  // A missing tool is not a fault while someone is only beginning.
  const own = faultsOfPart(faults, part.at, keys, root).filter(({ place }) => !isEmpty || (place !== "" && place !== "/tools"));
  const isMoreNeeded = more.some(({ name }) => name in found);
  return (
    <section className="card stack inspector" aria-label="Inspector" id="inspector" ref={box} key={pointerOf(part.at)}>
      <BackToParts />
      <Crumbs part={part} value={found} />
      {own.length > 0 && (
        <div className="note bad" role="status">
          <FaultList faults={own.map((fault) => ({ ...fault, place: "", line: undefined }))} />
        </div>
      )}
      {isEmpty && <p className="note">Next: add a source, then a tool over it.</p>}
      {first.map((key) => (
        <KeyOfPart key={key.name} formKey={key} part={part} value={found} />
      ))}
      {part.kind === "collection" && <ColumnList />}
      {part.kind === "collection" && <SampleRows entry={found} />}
      {more.length > 0 && (
        <details open={isMoreNeeded || undefined}>
          <summary>More: {more.map(({ name }) => name).join(", ")}</summary>
          <div className="stack">
            {more.map((key) => (
              <KeyOfPart key={key.name} formKey={key} part={part} value={found} />
            ))}
          </div>
        </details>
      )}
      {part.kind === "field" && <FillerChoice at={part.at} value={found} />}
      <PartActions part={part} />
    </section>
  );
}

/** On a narrow page the list of parts is above, out of sight. */
function BackToParts() {
  if (!useNarrow()) return null;
  const back = () => {
    const parts = document.getElementById("parts");
    parts?.scrollIntoView({ block: "start" });
    parts?.focus({ preventScroll: true });
  };
  return (
    <div>
      <Action kind="plain compact" onPress={back}>
        ↑ Back to the parts
      </Action>
    </div>
  );
}

/** What the source has, as results name it. */
function ColumnList() {
  const { columns } = useBuilder();
  if (columns.length === 0) return null;
  return (
    <section className="stack tight" aria-label="Columns">
      <h3>Columns</h3>
      <dl className="column-list">
        {columns.map(({ name, type, isNullable }) => (
          <Fragment key={name}>
            <dt className="mono">{name}</dt>
            <dd className="soft">{isNullable ? `${type}, may be empty` : type}</dd>
          </Fragment>
        ))}
      </dl>
    </section>
  );
}

/** The first rows of a source. Each look is recorded, so it is made when it is asked for. */
function SampleRows({ entry }: { entry: { [name: string]: Json } }) {
  const settings = isRecord(entry.settings) ? entry.settings : {};
  const connection = String(settings.connection ?? "");
  const source = String(settings[sourceSetting(String(entry.adapter))] ?? "");
  const [wanted, setWanted] = useState("");
  const isWanted = wanted !== "" && wanted === `${connection} ${source}`;
  const rows = useRows(connection, isWanted ? source : "");
  if (connection === "" || source === "") return null;
  return (
    <section className="stack tight" aria-label="Sample rows">
      {isWanted ? (
        <Loaded query={rows}>{(found) => <FirstRows rows={found} />}</Loaded>
      ) : (
        <div>
          <GuardedAction needs="editor" kind="compact" onPress={() => setWanted(`${connection} ${source}`)}>
            Show its first rows
          </GuardedAction>
        </div>
      )}
    </section>
  );
}

const KIND_WORDS: Record<Part["kind"], string> = { contract: "Contract", collection: "Source", tool: "Tool", field: "Field", member: "Member", element: "Item" };

function Crumbs({ part, value }: { part: Part; value: { [name: string]: Json } }) {
  const { root, select } = useBuilder();
  const above: { at: Place; text: string }[] = [];
  // The fields around this one.
  for (let length = part.at.length - 1; length > 0 && (part.kind === "member" || part.kind === "element"); length -= 1) {
    const at = part.at.slice(0, length);
    const found = valueAt(root, at);
    if (isRecord(found) && "type" in found) above.unshift({ at, text: String(found.name ?? "items") });
  }
  const name = part.kind === "collection" ? String(part.at[1]) : String(value.name ?? value.tool ?? value.contract ?? "");
  return (
    <div className="row ends">
      <h2>
        {KIND_WORDS[part.kind]} <span className="mono">{name}</span>
      </h2>
      {above.length > 0 && (
        <span className="row small">
          in
          {above.map(({ at, text }) => (
            <button key={pointerOf(at)} type="button" className="button plain compact" onClick={() => select(at)}>
              {text}
            </button>
          ))}
        </span>
      )}
    </div>
  );
}

function KeyOfPart({ formKey, part, value }: { formKey: FormKey; part: Part; value: { [name: string]: Json } }) {
  const { form, change, columns } = useBuilder();
  const { at } = part;
  if (formKey.name === "type" && part.kind !== "collection" && !isBound(value)) {
    const column = columns.find(({ name }) => name === (value.column ?? value.name));
    const { agreeing, others } = agreeingTypes(form, part.kind === "field" ? column : undefined);
    const option = (note: string) => (type: { name: string }) => ({ value: type.name, text: note ? `${type.name} (${note})` : type.name });
    return (
      <ChoiceField
        label={<span className="mono">type</span>}
        value={String(value.type ?? "")}
        none={value.type === undefined ? "choose" : undefined}
        help={typeNamed(form, value.type)?.help}
        options={[...agreeing.map(option("")), ...others.map(option(column ? `not for ${column.type}` : ""))]}
        onChange={(type) => change(changeType(form, at, value, type))}
      />
    );
  }
  if (formKey.name === "fields") return <FieldList list={[...at, "fields"]} label="Members" />;
  if (formKey.name === "of") return <ElementKey at={[...at, "of"]} />;
  return <KeyEditor formKey={formKey} at={[...at, formKey.name]} value={value[formKey.name]} />;
}

/** What a list holds. Its own keys are in a separate inspector. */
function ElementKey({ at }: { at: Place }) {
  const { root, form, change, select } = useBuilder();
  const found = valueAt(root, at);
  const value = isRecord(found) ? found : {};
  return (
    <div className="stack tight">
      <ChoiceField
        label={<span className="mono">of</span>}
        value={String(value.type ?? "")}
        none={value.type === undefined ? "choose" : undefined}
        help="What the list holds."
        options={form.types.map(({ name }) => name)}
        onChange={(type) => change(isRecord(found) ? changeType(form, at, value, type) : [{ kind: "set", at, value: { type } }])}
      />
      <div>
        <Action kind="compact" onPress={() => select(at, { focus: true })}>
          What an item may be
        </Action>
      </div>
    </div>
  );
}

const FILLERS: { value: Filler; text: string }[] = [
  { value: "sent", text: "the agent, in its call" },
  { value: "agent", text: "the name of the caller" },
  { value: "tenant", text: "the tenant of the caller" },
  { value: "value", text: "a constant" },
];

function FillerChoice({ at, value }: { at: Place; value: { [name: string]: Json } }) {
  const { form, change } = useBuilder();
  return (
    <ChoiceField
      label="Filled by"
      value={fillerOf(value)}
      options={FILLERS}
      help={isBound(value) ? "Agents neither see nor set it." : undefined}
      onChange={(filler) => change(changeFiller(form, at, value, filler as Filler))}
    />
  );
}

function PartActions({ part }: { part: Part }) {
  const { root, change, select } = useBuilder();
  const { kind, at } = part;
  const remove = (parent: Place, changes: Change[]) => {
    change(changes);
    select(parent);
  };
  if (kind === "field" || kind === "member") {
    const list = at.slice(0, -1);
    return (
      <div className="row ends">
        <AddField list={list} label="Add another field" />
        <Action kind="plain compact" onPress={() => remove(list.slice(0, -1), [{ kind: "remove", at }])}>
          Remove this field
        </Action>
      </div>
    );
  }
  if (kind === "tool" && at.length > 0) {
    return (
      <div className="row ends">
        <AddField list={[...at, "fields"]} />
        <Action kind="plain compact" onPress={() => remove([], [{ kind: "remove", at }])}>
          Remove this tool
        </Action>
      </div>
    );
  }
  if (kind === "tool") return <AddField list={["fields"]} />;
  if (kind === "collection") {
    const isLast = isRecord(valueAt(root, ["collections"])) && Object.keys(valueAt(root, ["collections"]) as object).length === 1;
    return (
      <div>
        <Action kind="plain compact" onPress={() => remove([], [isLast ? { kind: "set", at: ["collections"], value: {} } : { kind: "remove", at }])}>
          Remove this source
        </Action>
      </div>
    );
  }
  return null;
}
