// A schema, to be read: each property with its type, bounds and description.
import { useState } from "react";
import type { JsonSchema } from "../api/shapes";
import { Action } from "../parts/action";
import { Badge, CodeBlock, pretty } from "../parts/words";
import { fieldModel, propertiesOf, requiredOf, typeText } from "./model";

const DEPTH_MAX = 6;

export function SchemaView({ schema, label }: { schema: JsonSchema; label: string }) {
  const [isRaw, setRaw] = useState(false);
  return (
    <section className="stack tight">
      <div className="row ends">
        <h3>{label}</h3>
        <Action kind="plain compact" onPress={() => setRaw(!isRaw)}>
          {isRaw ? "As a list" : "As JSON"}
        </Action>
      </div>
      {isRaw ? <CodeBlock text={pretty(schema)} label={`${label} as JSON`} /> : <Properties schema={resultArm(schema)} root={schema} depth={0} />}
    </section>
  );
}

/** An output schema also allows Weir's errors; a reader looks for the result. */
function resultArm(schema: JsonSchema): JsonSchema {
  const { anyOf: _, ...result } = schema;
  return schema.properties ? result : schema;
}

function Properties({ schema, root, depth }: { schema: JsonSchema; root: JsonSchema; depth: number }) {
  const properties = propertiesOf(fieldModel(schema, root).schema);
  const required = requiredOf(schema);
  if (properties.length === 0) return <p className="soft">{typesWords(schema)}</p>;
  return (
    <div className="schema">
      {properties.map(([name, property]) => (
        <Property key={name} name={name} schema={property} root={root} isRequired={required.includes(name)} depth={depth} />
      ))}
    </div>
  );
}

function typesWords(schema: JsonSchema): string {
  return schema.type === "object" ? "No properties." : typeText(schema, schema);
}

interface PropertyProps {
  name: string;
  schema: JsonSchema;
  root: JsonSchema;
  isRequired: boolean;
  depth: number;
}

function Property({ name, schema, root, isRequired, depth }: PropertyProps) {
  const model = fieldModel(schema, root);
  const items = model.kind === "list" ? (model.schema.items as JsonSchema) : null;
  const inner = model.kind === "record" ? model.schema : items && fieldModel(items, root).kind === "record" ? fieldModel(items, root).schema : null;
  const { description, default: preset } = model.schema;
  return (
    <div className="property">
      <div className="head">
        <strong className="mono">{name}</strong>
        <span className="soft small">{typeText(schema, root)}</span>
        {isRequired && <Badge tone="accent">required</Badge>}
        {preset !== undefined && <span className="soft small">{JSON.stringify(preset)} by default</span>}
      </div>
      {typeof description === "string" && <div className="small">{description}</div>}
      {inner && depth < DEPTH_MAX && (
        <div className="inner">
          <Properties schema={inner} root={root} depth={depth + 1} />
        </div>
      )}
    </div>
  );
}
