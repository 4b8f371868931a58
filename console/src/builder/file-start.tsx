// How an empty builder begins: with a file, from which tools are drafted.
import { useQueryClient } from "@tanstack/react-query";
import { draftSource, uploadFile, useConnections } from "../api/sources";
import { FileUpload } from "../parts/upload";
import { SHEET_FILES } from "../parts/sources";
import { useBuilder } from "./context";

export function FileStart() {
  const client = useQueryClient();
  const connections = useConnections();
  const { replaceText } = useBuilder();
  const folder = (connections.data ?? []).find(({ uploads, refused }) => uploads && refused == null);
  if (!folder) return null;
  const put = async (file: File, progress: (part: number) => void) => {
    await uploadFile(folder.name, file, progress);
    await client.invalidateQueries({ queryKey: ["sources", folder.name] });
    const drafted = await draftSource(folder.name, file.name);
    replaceText(drafted.source, drafted.notes);
  };
  return (
    <FileUpload
      label="Choose a file…"
      title="Drop a CSV or spreadsheet here, or choose one"
      help="Tools that look up, list and count its rows are drafted from it. Nothing is published before you submit."
      isBox
      needs="editor"
      accept={SHEET_FILES}
      send={put}
      words={{ waiting: "is being read…", done: "is in the builder." }}
      onDone={() => undefined}
    />
  );
}
