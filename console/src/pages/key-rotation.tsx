// Replaces a key by another one: the same agent, access and limits. The old one works until it is revoked.
import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { api, unwrap } from "../api/client";
import type { KeyView, MadeKey } from "../api/shapes";
import { useAttempt } from "../parts/attempt";
import { Action, GuardedAction } from "../parts/action";
import { ChoiceField } from "../parts/fields";
import { ProblemNote } from "../parts/states";
import { lifeOf, LIVES, rotatedKey } from "./key-life";
import { MadeNote } from "./made-key";

export function KeyRotation({ view, onClose }: { view: KeyView; onClose: () => void }) {
  const client = useQueryClient();
  const [life, setLife] = useState(lifeOf(view));
  const [made, setMade] = useState<MadeKey | null>(null);
  const [isRevoked, setRevoked] = useState(false);
  const { error, isPending, attempt } = useAttempt();
  const run = async (work: () => Promise<void>) => {
    await attempt(async () => {
      await work();
      await client.invalidateQueries({ queryKey: ["keys"] });
    });
  };
  const make = (event: FormEvent) => {
    event.preventDefault();
    if (!isPending) void run(async () => setMade(await unwrap(api.POST("/v1/keys", { body: rotatedKey(view, life) as never }))));
  };
  const revoke = () =>
    run(async () => {
      await unwrap(api.DELETE("/v1/keys/{id}", { params: { path: { id: view.id } } }));
      setRevoked(true);
    });
  if (made) {
    return (
      <div className="stack">
        <MadeNote made={made} />
        {error != null && <ProblemNote error={error} />}
        {isRevoked ? (
          <p className="note good" role="status">
            The old key is revoked.
          </p>
        ) : (
          <section className="note stack tight" aria-label="The old key">
            <p>Give the new key to the agent first. The old one remains valid until you revoke it.</p>
            <div className="row">
              <GuardedAction needs="operator" kind="danger" isPending={isPending} onPress={() => void revoke()}>
                Revoke the old key
              </GuardedAction>
              <Action onPress={onClose}>Later</Action>
            </div>
          </section>
        )}
      </div>
    );
  }
  return (
    <form className="stack" onSubmit={make}>
      <p>
        This makes another key for <strong>{view.agent}</strong>, with the same access and limits. The old one remains valid until you revoke it.
      </p>
      <ChoiceField label="Expires" value={life} onChange={setLife} none="never" options={LIVES} />
      {error != null && <ProblemNote error={error} />}
      <div className="row">
        <GuardedAction needs="operator" kind="main" type="submit" isPending={isPending}>
          Make the new key
        </GuardedAction>
      </div>
    </form>
  );
}
