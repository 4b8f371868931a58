// The sources that a contract reaches, and whether they still are what was published.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../../api/client";
import { useCollections } from "../../api/queries";
import type { CollectionView } from "../../api/shapes";
import { useAttempt } from "../../parts/attempt";
import { GuardedAction } from "../../parts/action";
import { Empty, Loaded, ProblemNote } from "../../parts/states";
import { Badge } from "../../parts/words";
import { draftAddress } from "../drafts";

export function DriftTab({ contract }: { contract: string }) {
  const collections = useCollections();
  return (
    <Loaded query={collections}>
      {(all) => {
        const own = all.filter((collection) => collection.contract === contract);
        return own.length === 0 ? (
          <Empty title="It reaches no source itself">
            <p>Its tools are those of a plugin or of another server.</p>
          </Empty>
        ) : (
          <div className="stack">
            {own.map((collection) => (
              <Source key={collection.collection} view={collection} />
            ))}
          </div>
        );
      }}
    </Loaded>
  );
}

function Source({ view }: { view: CollectionView }) {
  const client = useQueryClient();
  const { error, isPending, attempt } = useAttempt();
  const [looked, setLooked] = useState(false);
  const look = async () => {
    await attempt(async () => {
      const path = { contract: view.contract, collection: view.collection };
      await unwrap(api.POST("/v1/collections/{contract}/{collection}/describe", { params: { path } }));
      setLooked(true);
    });
    await client.invalidateQueries({ queryKey: ["collections"] });
  };
  const hasDrift = view.drift.length > 0;
  return (
    <section className="card stack tight">
      <div className="row ends">
        <h2 className="row">
          {view.collection}
          <Badge tone={hasDrift ? "bad" : "good"}>{hasDrift ? "changed" : "as published"}</Badge>
          {view.write && <Badge tone="accent">may be written to</Badge>}
        </h2>
        <GuardedAction needs="editor" kind="compact" onPress={() => void look()} isPending={isPending}>
          Look now
        </GuardedAction>
      </div>
      <p className="soft">
        adapter <code>{view.adapter}</code> · columns {view.published.map((column) => <code key={column}>{column} </code>)}
      </p>
      {looked && !hasDrift && !error && <p>The source was just looked at: it is what was published.</p>}
      {hasDrift && (
        <div className="note bad stack tight">
          <p>
            Agents get <code>source_changed</code> for what this concerns.
          </p>
          <ul>
            {view.drift.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
          {view.draft && (
            <p>
              The form fits the source as it is now: <Link href={draftAddress({ contract: view.contract, id: view.draft })}>publish the draft</Link>.
            </p>
          )}
          {view.edits.length > 0 && (
            <div>
              Edit the form:
              <ul>
                {view.edits.map((edit) => (
                  <li key={edit}>{edit}</li>
                ))}
              </ul>
            </div>
          )}
        </div>
      )}
      {error != null && <ProblemNote error={error} retry={() => void look()} />}
    </section>
  );
}
