// How a tool of another server is left out: the text for the overlay.
import { stringify } from "yaml";
import { useUpstreams } from "../../api/queries";
import type { DraftView } from "../../api/shapes";
import { CodeBlock } from "../../parts/words";
import { overlayFile } from "../servers/choice";

export function LeaveOut({ upstream, contract, tool }: { upstream: NonNullable<DraftView["upstream"]>; contract: string; tool: string }) {
  const servers = useUpstreams();
  const file = servers.data?.upstreams.find(({ name }) => name === upstream.name)?.overlay ?? null;
  const leave = { leave: [upstream.tools[tool] ?? tool] };
  const text = stringify(file === null ? { contract, upstream: upstream.name, ...leave } : leave);
  return (
    <details className="stack tight">
      <summary>Leave it out</summary>
      <div className="stack tight">
        {file === null ? (
          <p>
            Save this as <code>{overlayFile(upstream.name)}</code> in the folder of <code>weir.toml</code>, write <code>overlay = "{overlayFile(upstream.name)}"</code> under{" "}
            <code>[upstreams.{upstream.name}]</code>, and reload the configuration. A draft without the tool takes the place of this one.
          </p>
        ) : (
          <p>
            Add this to <code>{file}</code>; where it has <code>leave</code> already, add the name to that list. The server is looked at again when the file is saved, and a
            draft without the tool takes the place of this one.
          </p>
        )}
        <CodeBlock text={text.trimEnd()} wraps label="Overlay" />
      </div>
    </details>
  );
}
