import { useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, unwrap } from "../api/client";
import { documentOf, useCollections, useContract, useContracts } from "../api/queries";
import type { ContractDetail } from "../api/shapes";
import { setAddressValues } from "../location";
import { GuardedAction } from "../parts/action";
import { Overlay } from "../parts/overlay";
import { PageHead } from "../parts/page";
import { Empty, Loaded, ProblemNote } from "../parts/states";
import { DataTable } from "../parts/table";
import { PageTabs } from "../parts/tabs";
import { Badge, CodeBlock, Time } from "../parts/words";
import { CallersTab } from "./contract/callers";
import { DraftsTab } from "./contract/drafts";
import { DriftTab } from "./contract/drift";
import { VersionsTab } from "./contract/versions";
import { ReachBadge } from "./tools";

export type TaggedContract = ContractDetail & { etag: string };

export function ContractPage({ name }: { name: string }) {
  const contract = useContract(name);
  const collections = useCollections();
  const drifted = collections.data?.filter((collection) => collection.contract === name && collection.drift.length > 0) ?? [];
  return (
    <Loaded query={contract} lines={9}>
      {(detail) => {
        const pending = detail.drafts.filter((draft) => draft.status === "pending").length;
        return (
          <>
            <Head detail={detail} />
            <PageTabs
              label={`Contract ${name}`}
              tabs={[
                { id: "now", title: "Now", content: () => <NowTab detail={detail} /> },
                { id: "versions", title: "Versions", content: () => <VersionsTab detail={detail} /> },
                {
                  id: "drafts",
                  title: (
                    <>
                      Drafts {pending > 0 && <Badge tone="warn">{pending}</Badge>}
                    </>
                  ),
                  content: () => <DraftsTab detail={detail} />,
                },
                {
                  id: "drift",
                  title: (
                    <>
                      Sources {drifted.length > 0 && <Badge tone="bad">{drifted.length}</Badge>}
                    </>
                  ),
                  content: () => <DriftTab contract={name} />,
                },
                { id: "callers", title: "Callers", content: () => <CallersTab contract={name} /> },
              ]}
            />
          </>
        );
      }}
    </Loaded>
  );
}

function Head({ detail }: { detail: TaggedContract }) {
  const contracts = useContracts();
  const listed = contracts.data?.contracts.find(({ name }) => name === detail.name);
  const isBuilt = listed?.origin === "api" || listed?.origin === "file";
  return (
    <>
      <PageHead title={detail.name} actions={isBuilt && <Link className="button" href={`/builder?contract=${encodeURIComponent(detail.name)}`}>Change it in the builder</Link>}>
        {detail.version ? (
          <>
            <span className="mono">{detail.version}</span> is live
          </>
        ) : (
          "Nothing of it is served now"
        )}
        {listed?.owner && (
          <>
            {" · "}comes from the configuration in <code>{listed.owner}</code>
          </>
        )}
        {listed?.rolled_back && ` · went back from ${listed.rolled_back}`}
      </PageHead>
    </>
  );
}

function NowTab({ detail }: { detail: TaggedContract }) {
  const document = documentOf(detail);
  if (!document) {
    const waits = detail.drafts.some((draft) => draft.status === "pending");
    return (
      <Empty title={detail.versions.length > 0 ? "This contract was retired" : "It was never published"}>
        {waits ? (
          <p>
            A draft waits: <Link href={`/contracts/${encodeURIComponent(detail.name)}?tab=drafts`}>look at it</Link> and publish it.
          </p>
        ) : (
          <p>Submit it again, or go back to a version under Versions.</p>
        )}
      </Empty>
    );
  }
  const others = [
    ...(document.prompts ?? []).map((prompt) => ({ kind: "prompt", name: prompt.name, text: prompt.description })),
    ...(document.resources ?? []).map((resource) => ({ kind: "resource", name: resource.uri, text: resource.name })),
    ...(document.resourceTemplates ?? []).map((template) => ({ kind: "template", name: template.uriTemplate, text: template.name })),
  ];
  return (
    <div className="stack wide">
      <DataTable
        label="Tools of the live version"
        rows={document.tools}
        rowKey={({ name }) => name}
        columns={[
          { head: "Tool", lead: true, cell: (tool) => <Link href={`/tools?tool=${encodeURIComponent(tool.name)}`}>{tool.name}</Link> },
          { head: "Reach", cell: (tool) => <ReachBadge tool={tool} /> },
          { head: "Description", cell: (tool) => tool.description },
          { head: "", cell: (tool) => <Link href={`/try?tool=${encodeURIComponent(tool.name)}`}>Try it</Link> },
        ]}
      />
      {others.length > 0 && (
        <DataTable
          label="Prompts and resources"
          rows={others}
          rowKey={({ name }) => name}
          columns={[
            { head: "Name", lead: true, cell: ({ name }) => <code>{name}</code> },
            { head: "Kind", cell: ({ kind }) => kind },
            { head: "Description", cell: ({ text }) => text },
          ]}
        />
      )}
      {detail.source && (
        <details className="stack tight">
          <summary>Its text</summary>
          <CodeBlock text={detail.source} label="Source of the contract" />
        </details>
      )}
      <Retire detail={detail} />
    </div>
  );
}

function Retire({ detail }: { detail: TaggedContract }) {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const open = () => {
    setError(null);
    setOpen(true);
  };
  const retire = async () => {
    setPending(true);
    setError(null);
    try {
      const params = { path: { name: detail.name }, header: { "If-Match": detail.etag } };
      const held = await unwrap(api.POST("/v1/contracts/{name}/retire", { params }));
      await client.invalidateQueries();
      setOpen(false);
      setAddressValues({ tab: "drafts", draft: held.draft ?? "" }, { push: true });
    } catch (caught) {
      setError(caught);
      void client.invalidateQueries({ queryKey: ["contract", detail.name] });
    }
    setPending(false);
  };
  return (
    <section className="row ends">
      <span className="soft">
        Published <Time ms={detail.versions.findLast((version) => version.version === detail.version)?.published_ms} />
      </span>
      <GuardedAction needs="editor" kind="compact" onPress={open}>
        Retire this contract
      </GuardedAction>
      <Overlay title={`Retire ${detail.name}?`} kind="dialog" isOpen={isOpen} onClose={() => setOpen(false)}>
        <p>
          This makes a draft. Its tools are served until an operator publishes that draft; afterwards no agent sees them.
        </p>
        {error != null && <ProblemNote error={error} />}
        <div className="row">
          <GuardedAction needs="editor" kind="danger" isPending={isPending} onPress={() => void retire()}>
            Make the draft
          </GuardedAction>
        </div>
      </Overlay>
    </section>
  );
}
