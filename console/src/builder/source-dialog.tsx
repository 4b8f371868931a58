// Adds a source: a connection, then a table or a file behind it, with its first rows.
import { useState } from "react";
import { Link } from "wouter";
import { draftSource, readRows, sourceSetting, useConnections, useSources } from "../api/sources";
import type { ConnectionView, Json, SourceRows } from "../api/shapes";
import { Action } from "../parts/action";
import { CheckField, ChoiceField, TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { ConnectionUpload, FirstRows } from "../parts/sources";
import { Loaded, ProblemNote } from "../parts/states";
import { CodeBlock } from "../parts/words";
import { isRecord } from "../schema/exact";
import { useBuilder } from "./context";
import { fieldName } from "./field-model";

/** What a person needs who has a file and no connection. */
const FILES = `[connections.files]
kind = "files"
path = "files"
uploads = true

[plugins.sheet.grants]
files = "read"
`;

export function SourceDialog({ onClose }: { onClose: () => void }) {
  const connections = useConnections();
  return (
    <Overlay title="Add a source" isOpen onClose={onClose} aside={<p className="soft">A file that you have, or a table or file that the gateway reaches.</p>}>
      <Loaded query={connections}>
        {(all) =>
          all.length > 0 ? (
            <SourceForm connections={all} onClose={onClose} />
          ) : (
            <div className="stack">
              <p>
                There is no connection yet. For files that are dropped here, make a folder <code>files</code>, write this into <code>weir.toml</code> next to it, then <Link href="/settings">reload the configuration</Link>; a
                database or a service is written in its place.
              </p>
              <CodeBlock text={FILES} label="Connection for files" />
            </div>
          )
        }
      </Loaded>
    </Overlay>
  );
}

function SourceForm({ connections, onClose }: { connections: ConnectionView[]; onClose: () => void }) {
  const { root, change, select, replaceText } = useBuilder();
  // A draft replaces the whole text, so it is offered only while there is nothing yet.
  const isEmpty = isRecord(root) && (!Array.isArray(root.tools) || root.tools.length === 0);
  const [isDrafting, setDrafting] = useState(false);
  const [connectionName, setConnection] = useState(connections[0]?.name ?? "");
  const [source, setSource] = useState("");
  const [typedName, setName] = useState<string | null>(null);
  const [isWritten, setWritten] = useState(false);
  const [rows, setRows] = useState<SourceRows | null>(null);
  const [error, setError] = useState<unknown>(null);
  const connection = connections.find(({ name }) => name === connectionName);
  const listed = useSources(connection, source);
  const name = typedName ?? collectionName(source);
  const taken = isRecord(root) && isRecord(root.collections) ? Object.keys(root.collections) : [];
  const isReady = source.trim() !== "" && /^[A-Za-z0-9_-]{1,64}$/.test(name) && !taken.includes(name);
  const setting = sourceSetting(connection?.adapter ?? "");
  const show = async (wanted = source.trim()) => {
    setError(null);
    try {
      setRows(await readRows(connectionName, wanted));
    } catch (caught) {
      setRows(null);
      setError(caught);
    }
  };
  const draft = async () => {
    setDrafting(true);
    setError(null);
    try {
      const drafted = await draftSource(connectionName, source.trim());
      replaceText(drafted.source, drafted.notes);
      onClose();
    } catch (caught) {
      setError(caught);
      setDrafting(false);
    }
  };
  /** A file that was just put in is seen at once. */
  const takeFile = (name: string) => {
    setSource(name);
    void show(name);
  };
  const add = () => {
    if (!connection || !isReady) return;
    const entry = { adapter: connection.adapter, settings: { connection: connectionName, [setting]: source.trim() }, ...(isWritten && { write: true }) };
    const isFirst = taken.length === 0;
    change([isFirst ? { kind: "set", at: ["collections"], value: { [name]: entry } } : { kind: "set", at: ["collections", name], value: entry as Json }]);
    select(["collections", name]);
    onClose();
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <ChoiceField
        label="Connection"
        value={connectionName}
        onChange={(next) => {
          setConnection(next);
          setRows(null);
        }}
        options={connections.map(({ name: one, adapter }) => ({ value: one, text: `${one} (${adapter})` }))}
        fault={connection?.refused}
      />
      {connection?.uploads && <ConnectionUpload connection={connectionName} onPut={takeFile} />}
      <TextField
        label={setting === "table" ? "Table" : "File or path"}
        value={source}
        onChange={(next) => {
          setSource(next);
          setRows(null);
        }}
        list={(listed.data ?? []).map((entry) => entry.name)}
        help={listed.data ? undefined : "As the connection calls it, such as tickets.csv"}
      />
      {listed.error != null && <ProblemNote error={listed.error} />}
      <TextField
        label="Name in the contract"
        value={name}
        onChange={setName}
        fault={taken.includes(name) ? "Another source has this name." : name !== "" && !/^[A-Za-z0-9_-]{1,64}$/.test(name) ? "Only letters, digits, _ and -." : undefined}
      />
      {connection?.write && <CheckField label="Tools may write to it" value={isWritten} onChange={setWritten} />}
      {error != null && <ProblemNote error={error} />}
      <div className="row">
        {isEmpty && (
          <Action kind="main" isDisabled={!connection || source.trim() === ""} isPending={isDrafting} onPress={() => void draft()}>
            Draft the tools
          </Action>
        )}
        <Action kind={isEmpty ? "" : "main"} type="submit" isDisabled={!isReady}>
          {isEmpty ? "Add the source only" : "Add the source"}
        </Action>
        <Action kind={isEmpty ? "plain" : ""} isDisabled={source.trim() === ""} onPress={() => void show()}>
          Show rows
        </Action>
      </div>
      {isEmpty && <p className="soft small">This drafts tools that look up, list and, where the source can be written, create records. You change them before anything is published.</p>}
      {rows && <FirstRows rows={rows} />}
    </form>
  );
}

/** `data/Invoices 2026.csv` becomes `invoices`. */
function collectionName(source: string): string {
  const last = source.trim().split(/[/\\]/).at(-1) ?? "";
  const plain = last.replace(/\.[a-z0-9]+$/i, "").replace(/[0-9]{4,}/g, "");
  return last === "" ? "" : fieldName(plain);
}
