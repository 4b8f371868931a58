// The parts of a contract: its sources, its tools, and the fields of the tool that is selected.
import { useEffect, useRef, useState } from "react";
import { Button, Menu, MenuItem, MenuTrigger, Popover, Text } from "react-aria-components";
import type { Json } from "../api/shapes";
import { Action } from "../parts/action";
import { useNarrow } from "../parts/narrow";
import { Badge } from "../parts/words";
import { isRecord } from "../schema/exact";
import { useBuilder } from "./context";
import type { Place } from "./edit";
import { valueAt } from "./edit";
import { FieldList } from "./field-list";
import { newTool } from "./field-model";
import { faultsWithin, pointerOf, toolOf, toolPlaces } from "./place";
import { SourceDialog } from "./source-dialog";

export function Outline() {
  const { root, part } = useBuilder();
  useInspectorShown(pointerOf(part.at));
  const tool = toolOf(part, root);
  const isContract = isRecord(root) && ("contract" in root || "collections" in root || "tools" in root);
  return (
    <nav className="stack outline" aria-label="Parts of the contract" id="parts" tabIndex={-1}>
      {isContract && <PartLink at={[]} text={String((root as { contract?: Json }).contract || "contract")} note="contract" />}
      {isContract && <Sources />}
      <Tools canAdd={isContract || Array.isArray(root)} />
      {tool && <FieldList list={[...tool, "fields"]} label="Fields" />}
    </nav>
  );
}

/** On a narrow page the form of a part is below the list: it is brought into sight when another part is chosen. */
function useInspectorShown(pointer: string) {
  const isNarrow = useNarrow();
  const before = useRef(pointer);
  useEffect(() => {
    if (before.current === pointer) return;
    before.current = pointer;
    if (isNarrow) document.getElementById("inspector")?.scrollIntoView({ block: "start" });
  }, [pointer, isNarrow]);
}

/** A button that selects a part, with the number of its faults. */
function PartLink({ at, text, note }: { at: Place; text: string; note?: string }) {
  const { part, faults, select } = useBuilder();
  const isCurrent = pointerOf(part.at) === pointerOf(at);
  const count = at.length === 0 ? 0 : faultsWithin(faults, at).length;
  return (
    <button type="button" className="part" aria-current={isCurrent || undefined} onClick={() => select(at)}>
      <span className="mono">{text || "?"}</span>
      <span className="row">
        {note && <span className="soft small">{note}</span>}
        {count > 0 && <Badge tone="bad">{count}</Badge>}
      </span>
    </button>
  );
}

function Sources() {
  const { root } = useBuilder();
  const [isOpen, setOpen] = useState(false);
  const collections = isRecord(root) && isRecord(root.collections) ? Object.entries(root.collections) : [];
  return (
    <section className="stack tight" aria-label="Sources">
      <h3>Sources</h3>
      {collections.map(([name, entry]) => (
        <PartLink key={name} at={["collections", name]} text={name} note={isRecord(entry) ? String(entry.adapter ?? "") : ""} />
      ))}
      {collections.length === 0 && <p className="soft small">A source is a table or a file that the tools read or write.</p>}
      <div>
        <Action kind="compact" onPress={() => setOpen(true)}>
          Add a source
        </Action>
      </div>
      {isOpen && <SourceDialog onClose={() => setOpen(false)} />}
    </section>
  );
}

function Tools({ canAdd }: { canAdd: boolean }) {
  const { root, form, select, change } = useBuilder();
  const places = toolPlaces(root);
  const tools = places.map((at) => valueAt(root, at));
  const collections = isRecord(root) && isRecord(root.collections) ? Object.keys(root.collections) : [];
  const list: Place = Array.isArray(root) ? [] : ["tools"];
  const add = (verb: string) => {
    const made = Array.isArray(root) ? { tool: "tool", fields: [] } : newTool(verb, collections[0] ?? "", tools as Json[]);
    change([{ kind: "insert", at: list, index: places.length, value: made }]);
    select([...list, places.length], { focus: true });
  };
  return (
    <section className="stack tight" aria-label="Tools">
      <h3>Tools</h3>
      {places.map((at, index) => {
        const tool = tools[index];
        return <PartLink key={pointerOf(at)} at={at} text={isRecord(tool) ? String(tool.tool ?? "") : ""} note={isRecord(tool) ? String(tool.verb ?? "") : ""} />;
      })}
      {places.length === 0 && <p className="soft small">A tool does one thing with a source: it finds, lists, counts, makes, changes or deletes records.</p>}
      {canAdd && (
        <div>
          <MenuTrigger>
            <Button className="button compact">Add a tool</Button>
            <Popover className="menu" placement="bottom start">
              <Menu aria-label="What the tool does" onAction={(key) => add(String(key))}>
                {form.verbs.map((verb) => (
                  <MenuItem key={verb.name} id={verb.name} textValue={verb.name}>
                    <Text slot="label">{verb.name}</Text>
                    <Text slot="description">{verb.help}</Text>
                  </MenuItem>
                ))}
              </Menu>
            </Popover>
          </MenuTrigger>
        </div>
      )}
    </section>
  );
}
