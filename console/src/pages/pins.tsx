// Which agents keep a version, whatever becomes live.
import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { api, unwrap } from "../api/client";
import { useContracts, useKeys, useServedVersions } from "../api/queries";
import type { PinView } from "../api/shapes";
import { useAttempt } from "../parts/attempt";
import { GuardedAction } from "../parts/action";
import { ChoiceField, TextField } from "../parts/fields";
import { Overlay } from "../parts/overlay";
import { Loaded, ProblemNote } from "../parts/states";
import { DataTable } from "../parts/table";
import { Time } from "../parts/words";
import { mayDo } from "../session";
import { servedVersions } from "./served-versions";

export function Pins() {
  const client = useQueryClient();
  const versions = useServedVersions();
  const [isPinning, setPinning] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const unpin = async ({ agent, contract }: PinView) => {
    setError(null);
    try {
      await unwrap(api.DELETE("/v1/pins/{agent}/{contract}", { params: { path: { agent, contract } } }));
    } catch (caught) {
      setError(caught);
    }
    await client.invalidateQueries({ queryKey: ["served-versions"] });
  };
  return (
    <section className="stack" aria-labelledby="pins">
      <div className="row ends">
        <h2 id="pins">Pinned to a version</h2>
        <GuardedAction needs="operator" kind="compact" onPress={() => setPinning(true)}>
          Pin an agent
        </GuardedAction>
      </div>
      {error != null && <ProblemNote error={error} />}
      <Loaded query={versions} lines={2}>
        {({ pins }) =>
          pins.length === 0 ? (
            <p className="soft">Every agent has the live versions.</p>
          ) : (
            <DataTable
              label="Pins"
              rows={pins}
              rowKey={({ agent, contract }) => `${agent} ${contract}`}
              columns={[
                { head: "Agent", lead: true, cell: ({ agent }) => <strong>{agent}</strong> },
                { head: "Version", cell: ({ contract, major }) => <code>{`${contract}@${major}`}</code> },
                {
                  head: "Since",
                  cell: ({ created_ms, created_by }) => (
                    <>
                      <Time ms={created_ms} /> <div className="soft">{created_by}</div>
                    </>
                  ),
                },
                {
                  head: "",
                  cell: (pin) => (
                    <GuardedAction needs="operator" kind="compact" label={`Unpin ${pin.agent} from ${pin.contract}`} onPress={() => void unpin(pin)}>
                      Unpin
                    </GuardedAction>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
      <Overlay title="Pin an agent" kind="dialog" isOpen={isPinning} onClose={() => setPinning(false)}>
        <PinForm onDone={() => setPinning(false)} />
      </Overlay>
    </section>
  );
}

function PinForm({ onDone }: { onDone: () => void }) {
  const client = useQueryClient();
  const keys = useKeys(mayDo("operator"));
  const contracts = useContracts();
  const versions = useServedVersions();
  const [agent, setAgent] = useState("");
  const [version, setVersion] = useState("");
  const { error, isPending, attempt } = useAttempt();
  const pin = async (event: FormEvent) => {
    event.preventDefault();
    const [contract = "", major = ""] = version.split("@");
    if (isPending || agent === "" || contract === "") return;
    await attempt(async () => {
      await unwrap(api.PUT("/v1/pins/{agent}/{contract}", { params: { path: { agent, contract } }, body: { major: Number(major) } }));
      await client.invalidateQueries({ queryKey: ["served-versions"] });
      onDone();
    });
  };
  return (
    <form className="stack" onSubmit={(event) => void pin(event)}>
      <p>It keeps this version with all of its keys, whatever becomes live.</p>
      <TextField label="Agent" value={agent} onChange={setAgent} list={[...new Set(keys.data?.map((key) => key.agent))]} required autoFocus />
      <ChoiceField
        label="Version"
        value={version}
        onChange={setVersion}
        none="Choose a version"
        options={servedVersions(contracts.data?.contracts ?? [], versions.data?.kept ?? [])}
      />
      {error != null && <ProblemNote error={error} />}
      <div className="row">
        <GuardedAction needs="operator" kind="main" type="submit" isPending={isPending} isDisabled={agent === "" || version === ""}>
          Pin it
        </GuardedAction>
      </div>
    </form>
  );
}
