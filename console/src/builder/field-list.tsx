// The fields of a form or a record: selected, added, moved by mouse and by keyboard, removed.
import { Button, GridList, GridListItem, Header, Menu, MenuItem, MenuSection, MenuTrigger, Popover, Text, useDragAndDrop, type Key } from "react-aria-components";
import type { Json } from "../api/shapes";
import { Badge } from "../parts/words";
import { isRecord } from "../schema/exact";
import { useBuilder } from "./context";
import { valueAt, type Place } from "./edit";
import { fieldOfColumn, fillerOf, freeColumns, isBound, newField } from "./field-model";
import { faultsWithin, placeAfterMove, pointerOf } from "./place";

interface FieldRow {
  id: string;
  index: number;
  name: string;
  note: string;
  isRequired: boolean;
  faults: number;
}

export function FieldList({ list, label }: { list: Place; label: string }) {
  const { root, part, faults, select, change } = useBuilder();
  const found = valueAt(root, list);
  const fields = Array.isArray(found) ? found : [];
  const rows = rowsOf(fields).map((row) => ({ ...row, faults: faultsWithin(faults, [...list, row.index]).length }));
  const isInside = list.every((step, index) => step === part.at[index]) && part.at.length > list.length;
  const selected = isInside ? rows[part.at[list.length] as number] : undefined;
  const move = (from: number, to: number) => {
    if (from === to || to < 0 || to >= fields.length) return;
    change([{ kind: "move", at: list, from, to }]);
    select(placeAfterMove(part.at, list, from, to));
  };
  const remove = (index: number) => {
    change([{ kind: "remove", at: [...list, index] }]);
    const left = fields.length - 1;
    if (selected) select(left === 0 ? list.slice(0, -1) : [...list, Math.min(index, left - 1)]);
  };
  const indexOf = (key: Key) => rows.findIndex(({ id }) => id === key);
  const { dragAndDropHooks } = useDragAndDrop({
    getItems: (keys) => [...keys].map((key) => ({ "text/plain": String(key) })),
    onReorder: ({ keys, target }) => {
      const [key] = keys;
      const from = key === undefined ? -1 : indexOf(key);
      const over = indexOf(target.key) + (target.dropPosition === "after" ? 1 : 0);
      if (from >= 0) move(from, over > from ? over - 1 : over);
    },
  });
  const onKey = (event: React.KeyboardEvent) => {
    if (!event.altKey || !selected || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    event.preventDefault();
    event.stopPropagation();
    move(selected.index, selected.index + (event.key === "ArrowUp" ? -1 : 1));
  };
  return (
    <section className="stack tight" aria-label={label}>
      <h3>{label}</h3>
      <div onKeyDownCapture={onKey}>
        <GridList
          aria-label={label}
          className="field-rows"
          items={rows}
          selectionMode="single"
          selectionBehavior="replace"
          selectedKeys={selected ? [selected.id] : []}
          onSelectionChange={(keys) => {
            const [key] = keys === "all" ? [] : [...keys];
            if (key !== undefined) select([...list, indexOf(key)]);
          }}
          dragAndDropHooks={dragAndDropHooks}
          renderEmptyState={() => <p className="soft small empty-rows">No field yet. A field is an argument that agents send.</p>}
        >
          {(row) => (
            <GridListItem id={row.id} textValue={row.name || "field without a name"}>
              <Button slot="drag" className="grip" aria-label={`Move ${row.name}`}>
                ⠿
              </Button>
              <span className="field-name">
                <span className="mono">{row.name || "?"}</span>
                {row.isRequired && (
                  <span className="needed" title="required">
                    *<span className="hidden-text">required</span>
                  </span>
                )}
              </span>
              <span className="soft small">{row.note}</span>
              {row.faults > 0 ? <Badge tone="bad">{row.faults}</Badge> : <span />}
              <Button className="button plain compact" aria-label={`Remove ${row.name || "field"}`} onPress={() => remove(row.index)}>
                ×
              </Button>
            </GridListItem>
          )}
        </GridList>
      </div>
      <div className="row">
        <AddField list={list} />
        {fields.length > 1 && <span className="soft small">Alt + ↑ ↓ moves a field.</span>}
      </div>
    </section>
  );
}

function rowsOf(fields: Json[]): Omit<FieldRow, "faults">[] {
  const seen = new Map<string, number>();
  return fields.map((field, index) => {
    const members = isRecord(field) ? field : {};
    const name = typeof members.name === "string" ? members.name : "";
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    const filler = isBound(field) ? fillerOf(members) : "sent";
    const note = filler === "sent" ? String(members.type ?? "") : filler === "value" ? "constant" : `the ${filler}`;
    return { id: `${name} ${times}`, index, name, note, isRequired: members.required === true };
  });
}

/** The palette: the columns without a field, then every type. */
export function AddField({ list, label = "Add a field" }: { list: Place; label?: string }) {
  const { root, form, columns, select, change } = useBuilder();
  const found = valueAt(root, list);
  const fields = Array.isArray(found) ? found : [];
  const isOfForm = list.filter((step) => step === "fields").length === 1;
  const free = isOfForm ? freeColumns(columns, fields) : [];
  const add = (key: Key) => {
    const [kind, name] = [String(key).slice(0, 1), String(key).slice(1)];
    const column = free.find((candidate) => candidate.name === name);
    const made = kind === "c" && column ? fieldOfColumn(form, column, fields) : newField(form, name, fields);
    change([{ kind: "insert", at: list, index: fields.length, value: made }]);
    select([...list, fields.length], { focus: true });
  };
  return (
    <MenuTrigger>
      <Button className="button compact">{label}</Button>
      <Popover className="menu" placement="bottom start">
        <Menu aria-label={`${label} for ${pointerOf(list)}`} onAction={add}>
          {free.length > 0 && (
            <MenuSection>
              <Header>Columns of the source</Header>
              {free.map((column) => (
                <MenuItem key={`c${column.name}`} id={`c${column.name}`} textValue={column.name}>
                  <Text slot="label" className="mono">
                    {column.name}
                  </Text>
                  <Text slot="description">{column.isNullable ? `${column.type}, may be empty` : column.type}</Text>
                </MenuItem>
              ))}
            </MenuSection>
          )}
          <MenuSection>
            <Header>{free.length > 0 ? "By its type" : "Types"}</Header>
            {form.types.map((type) => (
              <MenuItem key={`t${type.name}`} id={`t${type.name}`} textValue={type.name}>
                <Text slot="label">{type.name}</Text>
                <Text slot="description">{type.help}</Text>
              </MenuItem>
            ))}
          </MenuSection>
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}
