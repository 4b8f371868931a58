// The history: which versions there were, what differs between two versions, and the way back.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap } from "../../api/client";
import { useDiff, useVersion } from "../../api/queries";
import type { DiffReport, VersionView } from "../../api/shapes";
import { setAddressValues, useAddressValue } from "../../location";
import { useAttempt } from "../../parts/attempt";
import { Action, GuardedAction } from "../../parts/action";
import { ChoiceField } from "../../parts/fields";
import { Overlay } from "../../parts/overlay";
import { Empty, Loaded, ProblemNote } from "../../parts/states";
import { DataTable } from "../../parts/table";
import { Badge, ClassBadge, Digest, Time } from "../../parts/words";
import type { TaggedContract } from "../contract";
import { Callers, Difference } from "./difference";
import { KeptVersions } from "./kept";
import { TextLines } from "./text-lines";

export function VersionsTab({ detail }: { detail: TaggedContract }) {
  const newest = [...detail.versions].reverse();
  const [from, setFrom] = useAddressValue("from");
  const [to, setTo] = useAddressValue("to");
  if (newest.length === 0) return <Empty title="No version was published yet" />;
  const names = newest.map(({ version }) => version);
  const compare = (version: string) => setAddressValues({ from: version, to: detail.version ?? names[0] ?? "" }, { push: true });
  return (
    <div className="stack wide">
      <DataTable
        label="Versions"
        rows={newest}
        rowKey={({ version }) => version}
        columns={[
          {
            head: "Version",
            lead: true,
            cell: ({ version }) => (
              <span className="row">
                <span className="mono">{version}</span> {version === detail.version && <Badge tone="good">live</Badge>}
              </span>
            ),
          },
          { head: "Change", cell: (version) => <ClassBadge name={version.class} /> },
          { head: "Published", cell: (version) => <Time ms={version.published_ms} /> },
          { head: "By", cell: (version) => <code>{version.published_by}</code> },
          { head: "Fingerprint", cell: (version) => <Digest text={version.fingerprint} /> },
          {
            head: "",
            cell: (version: VersionView) =>
              version.version === detail.version ? null : (
                <Action kind="compact" onPress={() => compare(version.version)}>
                  Compare with live
                </Action>
              ),
          },
        ]}
      />
      <KeptVersions contract={detail.name} />
      {names.length > 1 && (
        <section className="stack">
          <div className="filters">
            <ChoiceField label="Compare" value={from} onChange={setFrom} options={names} none="Choose a version" />
            <ChoiceField label="with" value={to} onChange={setTo} options={names} none="Choose a version" />
          </div>
          {from && to && <Comparison detail={detail} from={from} to={to} />}
        </section>
      )}
    </div>
  );
}

function Comparison({ detail, from, to }: { detail: TaggedContract; from: string; to: string }) {
  const diff = useDiff(detail.name, from, to);
  return (
    <Loaded query={diff}>
      {(report) => (
        <div className="stack">
          <div className="row ends">
            <h2 className="row">
              {from} → {to} <ClassBadge name={report.class} />
            </h2>
            {from === detail.version && to !== from && <RollBack detail={detail} to={to} report={report} />}
            {to === detail.version && to !== from && (
              <Action kind="compact" onPress={() => setAddressValues({ from: to, to: from })}>
                What going back would change
              </Action>
            )}
          </div>
          <Callers impact={report.impact} />
          <div className="columns">
            <Difference report={report} />
            <TextDifference name={detail.name} from={from} to={to} />
          </div>
        </div>
      )}
    </Loaded>
  );
}

function TextDifference({ name, from, to }: { name: string; from: string; to: string }) {
  const before = useVersion(name, from);
  const after = useVersion(name, to);
  return (
    <section className="stack tight">
      <h3>The text</h3>
      <Loaded query={before}>
        {(old) => (
          <Loaded query={after}>
            {(now) =>
              old.source === now.source ? (
                <p className="soft">The texts are the same; the source or the plugin behind them changed.</p>
              ) : (
                <TextLines before={old.source} after={now.source} label={`Text of ${from} and ${to}`} />
              )
            }
          </Loaded>
        )}
      </Loaded>
    </section>
  );
}

function RollBack({ detail, to, report }: { detail: TaggedContract; to: string; report: DiffReport }) {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const { error, setError, isPending, attempt } = useAttempt();
  const open = () => {
    setError(null);
    setOpen(true);
  };
  const goBack = async () => {
    await attempt(async () => {
      const params = { path: { name: detail.name }, header: { "If-Match": detail.etag } };
      await unwrap(api.POST("/v1/contracts/{name}/rollback", { params, body: { to, fingerprint: report.fingerprint } }));
      setOpen(false);
      setAddressValues({ from: "", to: "" });
    });
    await client.invalidateQueries();
  };
  return (
    <>
      <GuardedAction needs={report.breaking ? "operator" : "editor"} kind={report.breaking ? "danger" : ""} onPress={open}>
        Go back to {to}
      </GuardedAction>
      <Overlay title={`Go back to ${to}?`} kind="dialog" isOpen={isOpen} onClose={() => setOpen(false)}>
        <p>
          {to} is served at once{report.breaking ? ", which breaks callers of the live version" : ""}. Its file, plugin or server still has
          the later version, which is published again only once it changes.
        </p>
        {error != null && <ProblemNote error={error} />}
        <div className="row">
          <GuardedAction needs={report.breaking ? "operator" : "editor"} kind="danger" isPending={isPending} onPress={() => void goBack()}>
            Go back
          </GuardedAction>
        </div>
      </Overlay>
    </>
  );
}
