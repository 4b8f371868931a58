// A tool that is new in a difference: its description, its arguments, and what it reaches.
import type { DiffItem, ToolDocument } from "../../api/shapes";
import { SchemaView } from "../../schema/view";
import { isRecord } from "../../schema/exact";
import { ReachBadge } from "../tools";
import { CodeBlock, pretty } from "../../parts/words";

export function NewTool({ item, tools }: { item: DiffItem; tools: ToolDocument[] }) {
  const written = isRecord(item.new) && "inputSchema" in item.new ? (item.new as unknown as ToolDocument) : undefined;
  const tool = written ?? tools.find(({ name }) => name === item.tool);
  if (!tool) return item.new === null ? null : <CodeBlock text={pretty(item.new)} wraps label="After" />;
  return (
    <div className="stack tight">
      <p className="row">
        <ReachBadge tool={tool} />
        {tool.annotations?.readOnlyHint === undefined && tool.annotations?.destructiveHint === undefined && <span className="soft small">It does not state whether it writes.</span>}
      </p>
      <div>
        <span className="soft small">Description that models read</span>
        <p className="model-text">{tool.description || <span className="soft">none</span>}</p>
      </div>
      <SchemaView schema={tool.inputSchema} label="Arguments" />
    </div>
  );
}
