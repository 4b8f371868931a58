// A newly made key, which is shown once, and how a client is connected with it.
import { useConfiguration } from "../api/queries";
import type { MadeKey } from "../api/shapes";
import { Snippets } from "../parts/snippets";
import { CodeBlock } from "../parts/words";

export function MadeNote({ made }: { made: MadeKey }) {
  const configuration = useConfiguration();
  return (
    <div className="stack">
      <div className="note warn">
        <strong>Copy it now.</strong> It is shown this once; only its hash is kept.
      </div>
      <CodeBlock text={made.key} wraps label="The key" />
      {made.warnings.map((warning) => (
        <p key={warning} className="note">
          {warning}
        </p>
      ))}
      <h3>Connect {made.agent}</h3>
      {configuration.data && <Snippets configuration={configuration.data} apiKey={made.key} />}
    </div>
  );
}
