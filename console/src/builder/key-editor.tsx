// One key of a part, with an editor for its type.
import { useLayoutEffect, useRef, useState, type ReactNode } from "react";
import type { FormKey } from "../api/form";
import { asProblem } from "../api/problem";
import type { Json } from "../api/shapes";
import { readRows, ROWS_MAX } from "../api/sources";
import { mayDo } from "../session";
import { Action } from "../parts/action";
import { CheckField, ChoiceField, FieldFrame } from "../parts/fields";
import { isNumber, isRecord, parseExact } from "../schema/exact";
import { typedNumber } from "../schema/model";
import { useBuilder } from "./context";
import type { Place } from "./edit";
import { columnAt, distinctValues } from "./column-values";
import { changesBetween, removeName, setChoiceTitle, setChoiceValue } from "./key-changes";
import { faultsWithin, pointerOf } from "./place";

interface KeyProps {
  formKey: FormKey;
  at: Place;
  value: Json | undefined;
}

interface EditorProps extends KeyProps {
  label: ReactNode;
  fault: ReactNode;
  /** `undefined` removes the key. */
  set: (value: Json | undefined) => void;
}

/** Texts that are often long get lines. */
const LONG = ["help", "description", "instructions", "say"];

export function KeyEditor(props: KeyProps) {
  const { formKey, at } = props;
  const { faults, change } = useBuilder();
  const found = faultsWithin(faults, at);
  const set = (value: Json | undefined) => {
    if (value === undefined && props.value === undefined) return;
    change([value === undefined ? { kind: "remove", at } : { kind: "set", at, value }], pointerOf(at));
  };
  const fault =
    found.length === 0 ? undefined : (
      <>
        {found.map((one, index) => (
          <div key={index}>
            {one.message}
            {one.hint && <span className="soft"> {one.hint}</span>}
          </div>
        ))}
      </>
    );
  const label = (
    <>
      <span className="mono">{formKey.name}</span>
      {formKey.required && <span className="soft"> required</span>}
    </>
  );
  return <ValueEditor {...props} label={label} fault={fault} set={set} />;
}

function ValueEditor(props: EditorProps): ReactNode {
  const { formKey, value, set, label, fault } = props;
  switch (formKey.value) {
    case "text":
      return <TextKey {...props} />;
    case "flag":
      return formKey.name === "decimals" ? <FlagChoice {...props} /> : <FlagKey {...props} />;
    case "number":
    case "count":
      return <NumberKey {...props} />;
    case "word":
      return (
        <ChoiceField
          label={label}
          help={formKey.help}
          fault={fault}
          value={typeof value === "string" ? value : ""}
          none={formKey.required && value !== undefined ? undefined : "not set"}
          options={wordOptions(formKey, value)}
          onChange={(word) => set(word || undefined)}
        />
      );
    case "names":
      return <NamesKey {...props} />;
    case "any":
      return <AnyKey {...props} />;
    case "part":
      return <InnerPart {...props} />;
    case "part_list":
      return formKey.part === "choice" ? <ChoicesKey {...props} /> : null;
    default:
      return <JsonKey {...props} />;
  }
}

/** A word of the text that is in no list is offered too, so that it is seen. */
function wordOptions(formKey: FormKey, value: Json | undefined): { value: string; text: string }[] {
  const known = formKey.words ?? [];
  const words = typeof value === "string" && value !== "" && !known.includes(value) ? [value, ...known] : known;
  return words.map((word) => ({ value: word, text: WORDS[word] ?? word }));
}

/** Words that are shown to a person in another form than in the text. */
const WORDS: Record<string, string> = { "contains-ci": "contains, any case" };

function TextKey({ formKey, at, value, set, label, fault }: EditorProps) {
  const { columns, root } = useBuilder();
  const text = value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const change = (next: string) => set(next === "" && !formKey.required ? undefined : next);
  const list = formKey.name === "column" ? columns.map(({ name }) => name) : formKey.name === "collection" ? collectionNames(root) : [];
  return (
    <FieldFrame label={label} help={formKey.help} fault={fault}>
      {(ids) =>
        LONG.includes(formKey.name) ? (
          <textarea {...ids} className="prose" rows={Math.min(6, Math.max(2, Math.ceil(text.length / 44)))} value={text} onChange={(event) => change(event.target.value)} />
        ) : (
          <>
            <input {...ids} value={text} list={list.length > 0 ? `${ids.id}-list` : undefined} autoComplete="off" spellCheck={false} onChange={(event) => change(event.target.value)} />
            {list.length > 0 && (
              <datalist id={`${ids.id}-list`}>
                {list.map((entry) => (
                  <option key={`${pointerOf(at)}${entry}`} value={entry} />
                ))}
              </datalist>
            )}
          </>
        )
      }
    </FieldFrame>
  );
}

const collectionNames = (root: Json | undefined) => (isRecord(root) && isRecord(root.collections) ? Object.keys(root.collections) : []);

function FlagKey({ formKey, value, set, fault }: EditorProps) {
  return (
    <div className="field">
      <CheckField
        label={
          <>
            <span className="mono">{formKey.name}</span> <span className="soft small">{formKey.help}</span>
          </>
        }
        value={value === true}
        onChange={(next) => set(next || undefined)}
      />
      {fault && <div className="fault">{fault}</div>}
    </div>
  );
}

/** A flag whose absence is a third state. */
function FlagChoice({ formKey, value, set, label, fault }: EditorProps) {
  const word = typeof value === "boolean" ? String(value) : "";
  return <ChoiceField label={label} help={formKey.help} fault={fault} value={word} none="not set" options={["true", "false"]} onChange={(next) => set(next === "" ? undefined : next === "true")} />;
}

/** The typed text is kept while it means the value. */
function NumberKey({ formKey, value, set, label, fault }: EditorProps) {
  const text = value === undefined ? "" : isNumber(value) ? JSON.stringify(value) : String(value);
  const [typed, setTyped] = useState(text);
  const isMeant = JSON.stringify(typedNumber(typed)) === JSON.stringify(value);
  const change = (next: string) => {
    setTyped(next);
    set(typedNumber(next));
  };
  return (
    <FieldFrame label={label} help={formKey.help} fault={fault}>
      {(ids) => <input {...ids} inputMode="decimal" autoComplete="off" value={isMeant ? typed : text} onChange={(event) => change(event.target.value)} />}
    </FieldFrame>
  );
}

/** Names in their order, each with a button that removes it. Enter or leaving the box adds the typed name. */
function NamesKey({ formKey, at, value, set, label, fault }: EditorProps) {
  const { columns, change } = useBuilder();
  const [typed, setTyped] = useState("");
  const list = Array.isArray(value) ? value : [];
  const names = list.map(String);
  const add = () => {
    const name = typed.trim();
    if (name === "") return;
    setTyped("");
    if (list.length === 0) set([name]);
    else if (!names.includes(name)) change([{ kind: "insert", at, index: list.length, value: name }], pointerOf(at));
  };
  const remove = (name: string) => {
    // If the list holds nothing else, the key is removed, which may be the last one of its part.
    if (names.every((other) => other === name)) set(undefined);
    else change(removeName(at, list, name), pointerOf(at));
  };
  return (
    <FieldFrame label={label} help={formKey.help} fault={fault}>
      {(ids) => (
        <>
          {names.length > 0 && (
            <ul className="row chips">
              {names.map((name) => (
                <li key={name}>
                  <span className="mono small">{name}</span>
                  <Action kind="plain compact" label={`Take out ${name}`} onPress={() => remove(name)}>
                    ×
                  </Action>
                </li>
              ))}
            </ul>
          )}
          <input
            {...ids}
            value={typed}
            list={`${ids.id}-list`}
            placeholder="Add one, Enter"
            autoComplete="off"
            onChange={(event) => setTyped(event.target.value)}
            onBlur={add}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              add();
            }}
          />
          <datalist id={`${ids.id}-list`}>
            {columns
              .filter(({ name }) => !names.includes(name))
              .map(({ name }) => (
                <option key={`${pointerOf(at)}${name}`} value={name} />
              ))}
          </datalist>
        </>
      )}
    </FieldFrame>
  );
}

/** A value of any type: what is not JSON is a text. */
function AnyKey({ formKey, value, set, label, fault }: EditorProps) {
  const text = value === undefined ? "" : typeof value === "string" ? (isJson(value) ? JSON.stringify(value) : value) : JSON.stringify(value);
  const [typed, setTyped] = useState(text);
  const isMeant = JSON.stringify(typedValue(typed)) === JSON.stringify(value);
  const change = (next: string) => {
    setTyped(next);
    set(typedValue(next));
  };
  return (
    <FieldFrame label={label} help={`${formKey.help} Text, or JSON.`} fault={fault}>
      {(ids) => <input {...ids} autoComplete="off" spellCheck={false} value={isMeant ? typed : text} onChange={(event) => change(event.target.value)} />}
    </FieldFrame>
  );
}

function isJson(text: string): boolean {
  try {
    parseExact(text);
    return true;
  } catch {
    return false;
  }
}

function typedValue(text: string): Json | undefined {
  if (text === "") return undefined;
  return isJson(text) ? parseExact(text) : text;
}

/** Lists and objects as JSON. Text that is not JSON yet changes nothing. */
function JsonKey({ formKey, at, value, set, label, fault }: EditorProps) {
  const { change: changeParts } = useBuilder();
  const text = value === undefined ? "" : JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");
  const [typed, setTyped] = useState<string | null>(null);
  const isBad = typed !== null && typed.trim() !== "" && !isJson(typed);
  const change = (next: string) => {
    setTyped(next);
    if (next.trim() === "") set(undefined);
    else if (!isJson(next)) return;
    else if (value === undefined) set(parseExact(next));
    else changeParts(changesBetween(at, value, parseExact(next)), pointerOf(at));
  };
  return (
    <FieldFrame label={label} help={`${formKey.help} As JSON.`} fault={isBad ? "This is not JSON yet." : fault}>
      {(ids) => <textarea {...ids} rows={2} spellCheck={false} value={typed ?? text} onChange={(event) => change(event.target.value)} onBlur={() => !isBad && setTyped(null)} />}
    </FieldFrame>
  );
}

function InnerPart({ formKey, at, value }: EditorProps) {
  const { form } = useBuilder();
  const inner = isRecord(value) ? value : {};
  const keys = form.parts[formKey.part ?? ""] ?? [];
  return (
    <fieldset className="nested">
      <legend className="mono">{formKey.name}</legend>
      {keys.map((key) => (
        <InnerKey key={key.name} outer={at} formKey={key} inner={inner} />
      ))}
    </fieldset>
  );
}

/** A key of a part that exists only while one of its keys does. */
function InnerKey({ outer, formKey, inner }: { outer: Place; formKey: FormKey; inner: { [name: string]: Json } }) {
  const { change, faults } = useBuilder();
  const at = [...outer, formKey.name];
  const set = (value: Json | undefined) => {
    const { [formKey.name]: old, ...others } = inner;
    const isEmpty = Object.keys(others).length === 0;
    if (value === undefined && old === undefined) return;
    if (value === undefined) change([{ kind: "remove", at: isEmpty ? outer : at }], pointerOf(at));
    else if (isEmpty && old === undefined) change([{ kind: "set", at: outer, value: { [formKey.name]: value } }], pointerOf(at));
    else change([{ kind: "set", at, value }], pointerOf(at));
  };
  const found = faultsWithin(faults, at);
  const fault = found.length > 0 ? found.map(({ message, hint }) => [message, hint].filter(Boolean).join(". ")).join(" ") : undefined;
  return <ValueEditor formKey={formKey} at={at} value={inner[formKey.name]} label={<span className="mono">{formKey.name}</span>} fault={fault} set={set} />;
}

/** Takes the values that the first rows have in the column of the field. */
function ColumnValues({ at, choices, onTake }: { at: Place; choices: Json[]; onTake: (values: string[]) => void }) {
  const { root } = useBuilder();
  const [note, setNote] = useState("");
  const [isPending, setPending] = useState(false);
  const origin = columnAt(root, at);
  if (!origin) return null;
  const take = async () => {
    setPending(true);
    setNote("");
    try {
      const { rows, more, masked } = await readRows(origin.connection, origin.source, ROWS_MAX);
      const values = distinctValues(rows, origin.column);
      if (values.length > 0) onTake(values);
      const hidden = masked.includes(origin.column) ? "Its values are those of a secret, and are not shown." : "The first rows have no value in this column.";
      setNote(values.length === 0 ? hidden : more ? `Those of the first ${rows.length} rows: add what others have.` : "");
    } catch (caught) {
      setNote(asProblem(caught).detail);
    }
    setPending(false);
  };
  return (
    <>
      {mayDo("editor") && (
        <Action kind="compact" isPending={isPending} onPress={() => void take()}>
          {choices.length > 0 ? "Take the values of the column instead" : "Take the values of the column"}
        </Action>
      )}
      {note && (
        <span className="soft small" role="status">
          {note}
        </span>
      )}
    </>
  );
}

/** The values of a dropdown, each with the title that people see. */
function ChoicesKey({ formKey, at, value, label, fault }: EditorProps) {
  const { change } = useBuilder();
  const box = useRef<HTMLFieldSetElement>(null);
  const isAdded = useRef(false);
  const choices = Array.isArray(value) ? value : [];
  // Before the next key arrives.
  useLayoutEffect(() => {
    if (!isAdded.current) return;
    isAdded.current = false;
    [...(box.current?.querySelectorAll<HTMLInputElement>(".choice-row > input:first-child") ?? [])].at(-1)?.focus();
  }, [choices.length]);
  const valueOf = (choice: Json) => (isRecord(choice) ? String(choice.value ?? "") : String(choice));
  const titleOf = (choice: Json) => (isRecord(choice) ? String(choice.title ?? "") : "");
  const put = (make: typeof setChoiceValue, index: number, text: string) => {
    const place = [...at, index];
    change(make(place, choices[index] ?? "", text), pointerOf(place));
  };
  const add = () => {
    change([value === undefined ? { kind: "set", at, value: [""] } : { kind: "insert", at, index: choices.length, value: "" }]);
    isAdded.current = true;
  };
  const move = (from: number, to: number) => to >= 0 && to < choices.length && change([{ kind: "move", at, from, to }]);
  return (
    <fieldset className="field choices" ref={box}>
      <legend>{label}</legend>
      {choices.map((choice, index) => (
        <div className="choice-row" key={index}>
          <input
            aria-label={`Choice ${index + 1}`}
            value={valueOf(choice)}
            autoComplete="off"
            onChange={(event) => put(setChoiceValue, index, event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter") add();
              if (event.altKey && event.key === "ArrowUp") move(index, index - 1);
              if (event.altKey && event.key === "ArrowDown") move(index, index + 1);
            }}
          />
          <input aria-label={`Title of choice ${index + 1}`} placeholder="title" value={titleOf(choice)} autoComplete="off" onChange={(event) => put(setChoiceTitle, index, event.target.value)} />
          <Action kind="plain compact" label={`Remove choice ${valueOf(choice)}`} onPress={() => change([{ kind: "remove", at: [...at, index] }])}>
            ×
          </Action>
        </div>
      ))}
      <div className="row">
        <Action kind="compact" onPress={add}>
          Add a choice
        </Action>
        <ColumnValues at={at} choices={choices} onTake={(values) => change(changesBetween(at, value, values))} />
      </div>
      <div className="help">{formKey.help} Enter adds the next one, Alt + ↑ ↓ moves one.</div>
      {fault && <div className="fault">{fault}</div>}
    </fieldset>
  );
}
