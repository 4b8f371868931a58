import { useState } from "react";
import type { Configuration } from "../api/queries";
import { hostedSnippets, mcpAddress, snippets } from "../snippets";
import { CodeBlock } from "./words";
import { ChoiceField } from "./fields";

/** How a client is connected, with a key if one is known. */
export function Snippets({ configuration, contract, apiKey = null }: { configuration: Configuration; contract?: string; apiKey?: string | null }) {
  const address = mcpAddress(configuration, contract);
  const issuers = configuration.identity.issuers?.map(({ issuer }) => issuer) ?? [];
  const all = [...snippets(address, apiKey ?? (configuration.identity.required ? "weir_…" : null)), ...hostedSnippets(address, issuers)];
  const [client, setClient] = useState(all[0]?.client ?? "");
  const chosen = all.find((snippet) => snippet.client === client);
  return (
    <div className="stack tight">
      <ChoiceField label="Client" value={client} onChange={setClient} options={all.map((snippet) => snippet.client)} />
      {chosen && (
        <>
          <p className="small">{chosen.place}</p>
          <CodeBlock text={chosen.text} label={`For ${chosen.client}`} />
          <p className="small">{chosen.after}</p>
        </>
      )}
    </div>
  );
}
