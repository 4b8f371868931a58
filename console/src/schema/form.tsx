// A form made from a JSON Schema. Its value is the JSON that is sent: an empty field is left out of it.
import { useId, useState, type ReactNode } from "react";
import type { Json, JsonSchema } from "../api/shapes";
import { Action } from "../parts/button";
import { isRecord, parseExact } from "./exact";
import type { Fault } from "./faults";
import { asBase64 } from "./base64";
import { armOf, boundsText, DEPTH_MAX, depthOf, emptyValue, fieldModel, isChoiceList, pointerPart, propertiesOf, requiredOf, shownPaths, typedNumber, typeText, placeholderOf, withMember, type FieldModel } from "./model";

export interface FormContext {
  root: JsonSchema;
  /** The faults that the gateway found, by the place of the value. */
  faults: Map<string, Fault>;
  /** People read titles and bounds, in the place of names and types. */
  isForPeople?: boolean;
}

interface FieldProps {
  name: string;
  schema: JsonSchema;
  path: string;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  isRequired: boolean;
  /** An item of a list, which is present or absent. */
  isItem?: boolean;
  context: FormContext;
}

const asRecord = (value: Json | undefined): { [name: string]: Json } => (isRecord(value) ? value : {});

export function SchemaForm({ schema, value, onChange, context }: {
  schema: JsonSchema;
  value: Json | undefined;
  onChange: (value: Json) => void;
  context: FormContext;
}) {
  const model = fieldModel(schema, context.root);
  const shown = new Set(shownPaths(schema, context.root, value));
  const elsewhere = [...context.faults].filter(([place]) => !shown.has(place));
  return (
    <div className="schema-form">
      {elsewhere.length > 0 && (
        <ul className="note bad stack tight" role="alert">
          {elsewhere.map(([place, { text }]) => (
            <li key={place}>
              <code>{place || "arguments"}</code> {text}
            </li>
          ))}
        </ul>
      )}
      {propertiesOf(model.schema).length === 0 && <p className="soft">It takes no arguments.</p>}
      <Members schema={model.schema} path="" value={asRecord(value)} onChange={onChange} context={context} />
    </div>
  );
}

function Members({ schema, path, value, onChange, context }: {
  schema: JsonSchema;
  path: string;
  value: { [name: string]: Json };
  onChange: (value: Json) => void;
  context: FormContext;
}) {
  const required = requiredOf(schema);
  return propertiesOf(schema).map(([name, property]) => (
    <Field
      key={name}
      name={name}
      schema={property}
      path={path + pointerPart(name)}
      value={value[name]}
      onChange={(next) => onChange(withMember(value, name, next))}
      isRequired={required.includes(name)}
      context={context}
    />
  ));
}

function Field(props: FieldProps) {
  const { name, schema, path, value, onChange, isRequired, context } = props;
  const own = useId();
  const model = depthOf(path) > DEPTH_MAX ? { ...fieldModel(schema, context.root), kind: "any" as const } : fieldModel(schema, context.root);
  const fault = context.faults.get(path);
  const help = typeof model.schema.description === "string" ? model.schema.description : "";
  const isGroup = ["record", "list", "map", "union"].includes(model.kind);
  // One control writes the value of a place; groups may share it with what is in them.
  const id = isGroup ? own : `input${path}`;
  const title = typeof model.schema.title === "string" ? model.schema.title : name;
  const words = context.isForPeople ? title : name;
  const described = [help && `${id}-help`, fault && `${id}-fault`].filter(Boolean).join(" ") || undefined;
  const label = (
    <div className="label-row">
      {isGroup ? <span className={nameClass(context, "label")}>{words}</span> : <label className={nameClass(context)} htmlFor={id}>{words}</label>}
      {!context.isForPeople && title !== name && <span>{title}</span>}
      {isRequired && !props.isItem && <span className="soft">required</span>}
      <span className="soft">{context.isForPeople ? boundsText(model) : typeText(schema, context.root)}</span>
      {model.isNullable && (
        <label className="check soft small">
          <input
            type="checkbox"
            checked={value === null}
            onChange={(event) => onChange(event.target.checked ? null : undefined)}
            aria-label={context.isForPeople ? `No value of ${words}` : `${name} is null`}
          />
          {context.isForPeople ? "no value" : "null"}
        </label>
      )}
    </div>
  );
  const body =
    value === null && model.isNullable ? (
      <p className="soft small">{context.isForPeople ? "It is sent empty." : "null is sent"}</p>
    ) : (
      <FieldBody {...props} model={model} id={id} described={described} isInvalid={fault !== undefined} />
    );
  const below = (
    <>
      {help && (
        <div className="help" id={`${id}-help`}>
          {help}
        </div>
      )}
      {fault && (
        <div className="fault row" id={`${id}-fault`}>
          {fault.text}
          {fault.suggestion !== undefined && (
            <Action kind="compact" onPress={() => onChange(fault.suggestion)}>
              Use {JSON.stringify(fault.suggestion)}
            </Action>
          )}
        </div>
      )}
    </>
  );
  if (isGroup) {
    return (
      <div className="field" role="group" aria-label={words} aria-describedby={described}>
        {label}
        {below}
        {body}
      </div>
    );
  }
  return (
    <div className="field">
      {label}
      {body}
      {below}
    </div>
  );
}

const nameClass = (context: FormContext, more = "") => [context.isForPeople ? "" : "mono", more].filter(Boolean).join(" ") || undefined;

interface BodyProps extends FieldProps {
  model: FieldModel;
  id: string;
  described: string | undefined;
  isInvalid: boolean;
}

function FieldBody(props: BodyProps): ReactNode {
  const { model, id, described, isInvalid, value, onChange, isRequired } = props;
  const common = { id, "aria-describedby": described, "aria-invalid": isInvalid || undefined, "aria-required": isRequired || undefined };
  const text = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const placeholder = placeholderOf(model.schema);
  switch (model.kind) {
    case "choice":
      return <Choice {...props} common={common} choices={model.choices} />;
    case "boolean":
      return <Choice {...props} common={common} choices={[true, false]} />;
    case "number":
      return <NumberBody {...props} common={common} text={text} placeholder={placeholder} />;
    case "long":
      return <textarea {...common} rows={4} value={text} placeholder={placeholder} onChange={(event) => onChange(event.target.value || undefined)} />;
    case "date":
      return <input {...common} type="date" value={text} onChange={(event) => onChange(event.target.value || undefined)} />;
    case "file":
      return <FileBody {...props} common={common} />;
    case "text":
    case "date-time":
      return (
        <input
          {...common}
          value={text}
          placeholder={placeholder || (model.kind === "date-time" ? "2026-01-31T12:00:00Z" : "")}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange(event.target.value || undefined)}
        />
      );
    case "record":
      return <RecordBody {...props} />;
    case "list":
      return isChoiceList(model, props.context.root) ? <BoxesBody {...props} /> : <ListBody {...props} />;
    case "map":
      return <MapBody {...props} />;
    case "union":
      return <UnionBody {...props} />;
    default:
      return <AnyBody {...props} common={common} />;
  }
}

/** Larger files are refused by the gateway, since a request has 4 MiB. */
const FILE_MAX = 3_000_000;

/** A file of this machine, which is sent as base64. */
function FileBody({ value, onChange, common }: BodyProps & { common: object }) {
  const [name, setName] = useState("");
  const [isLarge, setLarge] = useState(false);
  const choose = async (file: File | undefined) => {
    setLarge(file !== undefined && file.size > FILE_MAX);
    if (!file || file.size > FILE_MAX) return;
    setName(file.name);
    onChange(asBase64(new Uint8Array(await file.arrayBuffer())));
  };
  return (
    <div className="row">
      <input {...common} type="file" onChange={({ target }) => void choose(target.files?.[0])} />
      {typeof value === "string" && (
        <>
          <span className="soft small">
            {name || "A file"}, {value.length.toLocaleString("en")} characters of base64
          </span>
          <Action kind="plain compact" onPress={() => onChange(undefined)}>
            Remove
          </Action>
        </>
      )}
      {isLarge && <span className="fault small">A file has at most {FILE_MAX / 1_000_000} MB.</span>}
    </div>
  );
}

/** The typed text is kept while it means the value: `1.0` on the way to `1.05` is not made `1`. */
function NumberBody({ value, onChange, common, text, placeholder }: BodyProps & { common: object; text: string; placeholder: string }) {
  const [typed, setTyped] = useState(text);
  const change = (next: string) => {
    setTyped(next);
    onChange(typedNumber(next));
  };
  const isMeant = JSON.stringify(typedNumber(typed)) === JSON.stringify(value);
  return (
    <input {...common} inputMode="decimal" value={isMeant ? typed : text} placeholder={placeholder} autoComplete="off" onChange={(event) => change(event.target.value)} />
  );
}

function Choice({ value, onChange, choices, common, model, context }: BodyProps & { choices: Json[]; common: object }) {
  const preset = model.schema.default;
  const at = choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(value));
  const isOther = at < 0 && value !== undefined;
  const choose = (text: string) => text !== "-1" && onChange(text === "" ? undefined : choices[Number(text)]);
  return (
    <select {...common} value={isOther ? -1 : at < 0 ? "" : at} onChange={(event) => choose(event.target.value)}>
      <option value="">{preset === undefined ? (context.isForPeople ? "" : "not set") : `not set (${choiceText(preset, context)})`}</option>
      {isOther && <option value={-1}>{JSON.stringify(value)} (none of the values)</option>}
      {choices.map((choice, index) => (
        <option key={index} value={index}>
          {choiceText(choice, context)}
        </option>
      ))}
    </select>
  );
}

function choiceText(choice: Json, { isForPeople }: FormContext): string {
  if (typeof choice === "string") return choice;
  return isForPeople && typeof choice === "boolean" ? (choice ? "Yes" : "No") : JSON.stringify(choice);
}

/** Optional records down to this depth are open for people, and are sent if something is filled in. */
const OPEN_DEPTH = 3;

function RecordBody({ name, model, path, value, onChange, isRequired, context }: BodyProps) {
  const isOpen = context.isForPeople === true && depthOf(path) <= OPEN_DEPTH;
  if (value === undefined && !isRequired && !isOpen) {
    return (
      <div>
        <Action kind="compact" label={`Add ${name}`} onPress={() => onChange({})}>
          Add
        </Action>
      </div>
    );
  }
  return (
    <div className="nested">
      <Members
        schema={model.schema}
        path={path}
        value={asRecord(value)}
        onChange={(next) => onChange(isOpen && !isRequired && Object.keys(asRecord(next)).length === 0 ? undefined : next)}
        context={context}
      />
      {!isRequired && !isOpen && (
        <div>
          <Action kind="plain compact" label={`Remove ${name}`} onPress={() => onChange(undefined)}>
            Remove
          </Action>
        </div>
      )}
    </div>
  );
}

function ListBody({ name, model, path, value, onChange, context }: BodyProps) {
  const items = Array.isArray(value) ? value : [];
  const schema = (model.schema.items as JsonSchema | undefined) ?? {};
  const replace = (next: Json[]) => onChange(next.length > 0 || model.schema.minItems !== undefined ? next : undefined);
  const swap = (at: number, other: number) => {
    const next = [...items];
    [next[at], next[other]] = [next[other] as Json, next[at] as Json];
    replace(next);
  };
  return (
    <div className="nested">
      {items.map((item, at) => (
        <div className="list-item" key={at}>
          <Field
            name={`${name} ${at + 1}`}
            schema={schema}
            path={path + pointerPart(at)}
            value={item}
            onChange={(next) => replace(items.map((old, other) => (other === at ? (next ?? emptyValue(fieldModel(schema, context.root))) : old)))}
            isRequired
            isItem
            context={context}
          />
          <div className="row">
            <Action kind="plain compact" label={`Move ${name} ${at + 1} up`} isDisabled={at === 0} onPress={() => swap(at, at - 1)}>
              ↑
            </Action>
            <Action kind="plain compact" label={`Move ${name} ${at + 1} down`} isDisabled={at === items.length - 1} onPress={() => swap(at, at + 1)}>
              ↓
            </Action>
            <Action kind="plain compact" label={`Remove ${name} ${at + 1}`} onPress={() => replace(items.filter((_, other) => other !== at))}>
              Remove
            </Action>
          </div>
        </div>
      ))}
      <div>
        <Action kind="compact" label={`Add to ${name}`} onPress={() => onChange([...items, emptyValue(fieldModel(schema, context.root))])}>
          Add
        </Action>
      </div>
    </div>
  );
}

/** A list of some of a few values, in the order of the schema. */
function BoxesBody({ model, value, onChange, context }: BodyProps) {
  const { choices } = fieldModel((model.schema.items as JsonSchema | undefined) ?? {}, context.root);
  const chosen = Array.isArray(value) ? value : [];
  const has = (choice: Json) => chosen.some((item) => JSON.stringify(item) === JSON.stringify(choice));
  const others = chosen.filter((item) => !choices.some((choice) => JSON.stringify(item) === JSON.stringify(choice)));
  const tick = (choice: Json, isTicked: boolean) => {
    const next = [...choices.filter((other) => (other === choice ? isTicked : has(other))), ...others];
    onChange(next.length > 0 || model.schema.minItems !== undefined ? next : undefined);
  };
  return (
    <div className="row boxes">
      {choices.map((choice) => (
        <label key={JSON.stringify(choice)} className="check">
          <input type="checkbox" checked={has(choice)} onChange={(event) => tick(choice, event.target.checked)} />
          <span>{typeof choice === "string" ? choice : JSON.stringify(choice)}</span>
        </label>
      ))}
    </div>
  );
}

function MapBody({ name, model, path, value, onChange, context }: BodyProps) {
  const [key, setKey] = useState("");
  const record = asRecord(value);
  const schema = (model.schema.additionalProperties as JsonSchema | undefined) ?? {};
  const replace = (next: { [name: string]: Json }) => onChange(Object.keys(next).length > 0 ? next : undefined);
  return (
    <div className="nested">
      {Object.entries(record).map(([member, inner]) => (
        <div className="list-item" key={member}>
          <Field
            name={member}
            schema={schema}
            path={path + pointerPart(member)}
            value={inner}
            onChange={(next) => replace({ ...record, [member]: next ?? emptyValue(fieldModel(schema, context.root)) })}
            isRequired
            context={context}
          />
          <Action kind="plain compact" label={`Remove ${member}`} onPress={() => replace(withMember(record, member, undefined))}>
            Remove
          </Action>
        </div>
      ))}
      <div className="row">
        <input aria-label={`A new name in ${name}`} placeholder="name" value={key} onChange={(event) => setKey(event.target.value)} />
        <Action
          kind="compact"
          isDisabled={key === "" || key in record}
          onPress={() => {
            replace({ ...record, [key]: emptyValue(fieldModel(schema, context.root)) });
            setKey("");
          }}
        >
          Add
        </Action>
      </div>
    </div>
  );
}

function UnionBody({ name, model, path, value, onChange, isRequired, context }: BodyProps) {
  const [chosen, setChosen] = useState(() => armOf(value, model.arms));
  const arm = model.arms[chosen];
  return (
    <div className="nested">
      <select
        aria-label={`Kind of ${name}`}
        value={chosen}
        onChange={(event) => {
          const next = Number(event.target.value);
          const schema = model.arms[next];
          setChosen(next);
          onChange(schema && next >= 0 ? emptyValue(fieldModel(schema, context.root)) : undefined);
        }}
      >
        {(!isRequired || chosen < 0) && <option value={-1}>not set</option>}
        {model.arms.map((schema, index) => (
          <option key={index} value={index}>
            {typeof schema.title === "string" ? schema.title : typeText(schema, context.root)}
          </option>
        ))}
      </select>
      {arm && <Field name={name} schema={arm} path={path} value={value} onChange={onChange} isRequired context={{ ...context, faults: withoutPlace(context.faults, path) }} />}
    </div>
  );
}

/** The alternative is at the same place, so its fault is shown only once. */
function withoutPlace(faults: Map<string, Fault>, path: string): Map<string, Fault> {
  return new Map([...faults].filter(([place]) => place !== path));
}

function AnyBody({ value, onChange, common }: BodyProps & { common: object }) {
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const [isBad, setBad] = useState(false);
  const change = (next: string) => {
    setText(next);
    try {
      onChange(next.trim() === "" ? undefined : parseExact(next));
      setBad(false);
    } catch {
      setBad(true);
    }
  };
  return (
    <>
      <textarea {...common} rows={3} value={text} placeholder="JSON" spellCheck={false} onChange={(event) => change(event.target.value)} />
      {isBad && <div className="fault">This is not JSON yet; the last JSON that was typed is sent.</div>}
    </>
  );
}
