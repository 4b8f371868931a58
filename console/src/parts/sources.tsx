// What the builder and the page of connections show of a source.
import { useQueryClient } from "@tanstack/react-query";
import { uploadFile } from "../api/sources";
import type { SourceRows } from "../api/shapes";
import { RecordTable } from "../schema/records";
import { FileUpload } from "./upload";

/** The endings of files that may be put into a connection. */
export const SHEET_FILES = ".csv,.txt,.tsv,.tab,.xlsx,.xlsm,.ods";

export function FirstRows({ rows }: { rows: SourceRows }) {
  return (
    <div className="stack tight">
      {rows.rows.length > 0 ? (
        <RecordTable label="First rows" table={{ columns: rows.columns, rows: rows.rows }} />
      ) : (
        <p className="soft">It has no row yet. Its columns: {rows.columns.join(", ")}.</p>
      )}
      <p className="soft small">
        {rows.more && "There are more rows. "}
        {rows.masked.length > 0 && `Not shown, because their names are those of secrets: ${rows.masked.join(", ")}.`}
      </p>
    </div>
  );
}

/** A file is put into a connection, replacing the one of the same name. */
export function ConnectionUpload({ connection, onPut }: { connection: string; onPut: (name: string) => void }) {
  const client = useQueryClient();
  return (
    <FileUpload
      label="Choose a file…"
      title="Drop a CSV or spreadsheet here, or choose one"
      isBox
      needs="editor"
      accept={SHEET_FILES}
      send={(file, progress) => uploadFile(connection, file, progress)}
      words={{ waiting: "is being stored…", done: "is in it." }}
      onDone={async ({ name }) => {
        await client.invalidateQueries({ queryKey: ["sources", connection] });
        await client.invalidateQueries({ queryKey: ["rows", connection] });
        onPut(name);
      }}
    />
  );
}
