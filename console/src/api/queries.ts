// What pages read. Lists are read again while a page is open: the API has no stream of changes.
import { useQueries, useQuery } from "@tanstack/react-query";
import { api, exchange, unwrap } from "./client";
import type { Fault } from "./problem";
import type { AuditRecord, AuditReport, ContractDocument, ContractDetail, ContractPreview, DiffReport, ToolDocument } from "./shapes";

const LIST_MS = 5_000;

export const useContracts = () =>
  useQuery({ queryKey: ["contracts"], queryFn: () => unwrap(api.GET("/v1/contracts")), refetchInterval: LIST_MS });

const contractQuery = (name: string) => ({
  queryKey: ["contract", name],
  queryFn: async () => {
    const { data, response } = await exchange(api.GET("/v1/contracts/{name}", { params: { path: { name } } }));
    return { ...data, etag: response.headers.get("ETag") ?? "" };
  },
});

export const useContract = (name: string) => useQuery({ ...contractQuery(name), refetchInterval: LIST_MS });

export const useVersion = (name: string, version: string) =>
  useQuery({
    queryKey: ["version", name, version],
    queryFn: () =>
      unwrap(api.GET("/v1/contracts/{name}/versions/{version}", { params: { path: { name, version } } })),
    enabled: version !== "",
    // A version never changes.
    staleTime: Infinity,
  });

export const useDiff = (name: string, from: string, to: string) =>
  useQuery({
    queryKey: ["diff", name, from, to],
    queryFn: async () =>
      (await unwrap(
        api.GET("/v1/contracts/{name}/diff", { params: { path: { name }, query: { from, to } } }),
      )) as unknown as DiffReport,
    enabled: from !== "" && to !== "",
  });

export const useDrafts = (contract?: string) =>
  useQuery({
    queryKey: ["drafts", contract ?? ""],
    queryFn: () => unwrap(api.GET("/v1/drafts", { params: { query: { contract } } })),
    refetchInterval: LIST_MS,
  });

export const useDraft = (id: string) =>
  useQuery({
    queryKey: ["draft", id],
    queryFn: () => unwrap(api.GET("/v1/drafts/{id}", { params: { path: { id } } })),
    enabled: id !== "",
  });

/** A preview whose problems have their lines. */
export type PreviewedContract = Omit<ContractPreview, "problems"> & { problems: Fault[] };

export const usePreview = (source: string, enabled: boolean) =>
  useQuery({
    queryKey: ["preview", source],
    queryFn: async (): Promise<PreviewedContract> => {
      const preview = await unwrap(api.POST("/v1/contracts/preview", { body: { source } }));
      const { placeFaults } = await import("../parts/fault-lines");
      return { ...preview, problems: placeFaults(preview.problems as unknown as Fault[], source) };
    },
    enabled,
    retry: false,
    // Of each text that was typed there is one.
    gcTime: 0,
    placeholderData: (before) => before,
  });

export interface ServedTool {
  contract: string;
  version: string;
  tool: ToolDocument;
}

export function documentOf(detail: Pick<ContractDetail, "document">): ContractDocument | null {
  return detail.document as ContractDocument | null;
}

/** The tools of every live contract, from the document of each. */
export function useTools() {
  const contracts = useContracts();
  const live = contracts.data?.contracts.filter((contract) => contract.version) ?? [];
  const details = useQueries({
    queries: live.map((contract) => ({
      ...contractQuery(contract.name),
      queryKey: ["contract", contract.name, contract.version, contract.revision],
      staleTime: Infinity,
    })),
  });
  const tools: ServedTool[] = details.flatMap(({ data }) => {
    const document = data && documentOf(data);
    return (document?.tools ?? []).map((tool) => ({
      contract: data?.name ?? "",
      version: data?.version ?? "",
      tool,
    }));
  });
  const failed = details.find((detail) => detail.error);
  return {
    tools,
    isPending: contracts.isPending || details.some((detail) => detail.isPending),
    error: contracts.error ?? failed?.error ?? null,
    refetch: () => {
      void contracts.refetch();
      for (const detail of details) if (detail.error) void detail.refetch();
    },
  };
}

export const useKeys = () => useQuery({ queryKey: ["keys"], queryFn: () => unwrap(api.GET("/v1/keys")) });

export const useAdmins = (enabled: boolean) =>
  useQuery({ queryKey: ["admins"], queryFn: () => unwrap(api.GET("/v1/admins")), enabled });

export const useUpstreams = () =>
  useQuery({ queryKey: ["upstreams"], queryFn: () => unwrap(api.GET("/v1/upstreams")), refetchInterval: LIST_MS });

export const usePlugins = () =>
  useQuery({ queryKey: ["plugins"], queryFn: () => unwrap(api.GET("/v1/plugins")), refetchInterval: LIST_MS });

export const useCollections = () =>
  useQuery({ queryKey: ["collections"], queryFn: () => unwrap(api.GET("/v1/collections")) });

export interface AuditFilter {
  since?: string;
  until?: string;
  kind?: string;
  agent?: string;
  tool?: string;
  contract?: string;
  outcome?: string;
  call_id?: string;
  limit?: number;
}

export const useAudit = (filter: AuditFilter, follow: boolean) =>
  useQuery({
    queryKey: ["audit", filter],
    queryFn: async () =>
      (await unwrap(api.GET("/v1/audit", { params: { query: filter } }))) as unknown as AuditRecord[],
    refetchInterval: follow ? 2_000 : false,
    placeholderData: (before) => before,
  });

export const readAuditReport = async () => (await unwrap(api.GET("/v1/audit/verify"))) as unknown as AuditReport;

/** The effective configuration, as far as pages name its keys. */
export interface Configuration {
  http: { listen: string; public_url: string | null };
  identity: { required: boolean };
  contracts: { impact_days: number };
  connections: string[];
  plugins: Record<string, { grants: Record<string, string> }>;
  views: Record<string, unknown>;
  upstreams: string[];
  [section: string]: unknown;
}

export const useConfiguration = () =>
  useQuery({
    queryKey: ["configuration"],
    queryFn: async () => (await unwrap(api.GET("/v1/config"))) as unknown as Configuration,
  });
