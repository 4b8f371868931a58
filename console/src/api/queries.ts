// What pages read. Lists are read again while a page is open and seen.
import { useQuery } from "@tanstack/react-query";
import { isFollowing, STATS_KEY, STATS_S } from "../live";
import { parseMetrics, type Sample } from "../metrics";
import { api, exchange, unwrap } from "./client";
import { mayApprove, mayDo } from "../session";
import { ProblemError, readProblem, unreachable, type Fault } from "./problem";
import type { CatalogueTool, ContractDocument, ContractDetail, ContractPreview, DiffReport, DraftView, ToolDocument } from "./shapes";

export const LIST_MS = 5_000;
/** Where events report when to read a list again, this is for changes without events. */
const FOLLOWED_MS = 60_000;

/** The interval of lists whose changes events report. */
export const followedInterval = () => (isFollowing() ? FOLLOWED_MS : LIST_MS);

type ListInterval = number | typeof followedInterval;

export const useContracts = () =>
  useQuery({ queryKey: ["contracts"], queryFn: () => unwrap(api.GET("/v1/contracts")), refetchInterval: followedInterval, enabled: mayDo("viewer") });

export const contractQuery = (name: string) => ({
  queryKey: ["contract", name],
  queryFn: async () => {
    const { data, response } = await exchange(api.GET("/v1/contracts/{name}", { params: { path: { name } } }));
    return { ...data, etag: response.headers.get("ETag") ?? "" };
  },
});

export const useContract = (name: string) => useQuery({ ...contractQuery(name), refetchInterval: followedInterval, enabled: name !== "" });

export const useVersion = (name: string, version: string) =>
  useQuery({
    queryKey: ["version", name, version],
    queryFn: () =>
      unwrap(api.GET("/v1/contracts/{name}/versions/{version}", { params: { path: { name, version } } })),
    enabled: version !== "",
    // A version never changes.
    staleTime: Infinity,
  });

/** The versions kept alongside the live ones, and the agents that are pinned to one. */
export const useServedVersions = () =>
  useQuery({ queryKey: ["served-versions"], queryFn: () => unwrap(api.GET("/v1/versions")), refetchInterval: LIST_MS });

/** The calls of kept versions since the process started, by contract and version. */
export const useKeptCalls = () =>
  useQuery({
    queryKey: ["kept-calls"],
    queryFn: async () => {
      const calls = (await readSamples()).filter(({ name }) => name === "weir_kept_version_calls_total");
      return new Map(calls.map(({ labels, value }) => [`${labels.contract}@${labels.version}`, value]));
    },
    refetchInterval: LIST_MS,
  });

/** The agents that called the tools of a contract, of the calls that are kept. */
export const useCallers = (name: string) =>
  useQuery({
    queryKey: ["callers", name],
    queryFn: () => unwrap(api.GET("/v1/contracts/{name}/callers", { params: { path: { name } } })),
    refetchInterval: LIST_MS,
  });

/** The writes that wait for a person, and those of the last day that no longer do. */
export const usePlans = () =>
  useQuery({ queryKey: ["plans"], queryFn: () => unwrap(api.GET("/v1/approvals")), refetchInterval: LIST_MS, enabled: mayApprove() });

export const usePlan = (id: string) =>
  useQuery({
    queryKey: ["plans", id],
    queryFn: () => unwrap(api.GET("/v1/approvals/{id}", { params: { path: { id } } })),
    refetchInterval: LIST_MS,
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

export const useDrafts = (status: DraftView["status"] = "pending") =>
  useQuery({
    queryKey: ["drafts", status],
    queryFn: () => unwrap(api.GET("/v1/drafts", { params: { query: { status } } })),
    refetchInterval: followedInterval,
    enabled: mayDo("viewer"),
  });

export const useDraft = (id: string) =>
  useQuery({
    queryKey: ["draft", id],
    queryFn: () => unwrap(api.GET("/v1/drafts/{id}", { params: { path: { id } } })),
    enabled: id !== "",
  });

/** A preview with the lines of its problems. */
export type PreviewedContract = Omit<ContractPreview, "problems"> & { problems: Fault[] };

export const usePreview = (source: string, enabled: boolean) =>
  useQuery({
    queryKey: ["preview", source],
    queryFn: async ({ signal }): Promise<PreviewedContract> => {
      const preview = await unwrap(api.POST("/v1/contracts/preview", { body: { source }, signal }));
      const { placeFaults } = await import("../parts/fault-lines");
      return { ...preview, problems: placeFaults(preview.problems as unknown as Fault[], source) };
    },
    enabled,
    retry: false,
    // There is one for each text that was typed.
    gcTime: 0,
    placeholderData: (before) => before,
  });

/** A tool of the catalogue, with its entry as a client lists it. */
export type ServedTool = Omit<CatalogueTool, "tool"> & { tool: ToolDocument };

export function documentOf(detail: Pick<ContractDetail, "document">): ContractDocument | null {
  return detail.document as ContractDocument | null;
}

/** All served tools, or those that one agent sees. */
export function useTools(agent = "") {
  const query = useQuery({
    queryKey: ["tools", agent],
    queryFn: async () => {
      const tools: ServedTool[] = [];
      let cursor: string | undefined;
      do {
        const page = await unwrap(api.GET("/v1/tools", { params: { query: { agent: agent || undefined, cursor } } }));
        tools.push(...(page.tools as unknown as ServedTool[]));
        cursor = page.next_cursor ?? undefined;
      } while (cursor);
      return tools;
    },
    refetchInterval: LIST_MS,
  });
  return { tools: query.data ?? [], isPending: query.isPending, error: query.error, refetch: () => void query.refetch() };
}

export const useKeys = (enabled = true) => useQuery({ queryKey: ["keys"], queryFn: () => unwrap(api.GET("/v1/keys")), enabled });

/** Why recent requests were answered with 401. */
export const useIdentityFailures = () =>
  useQuery({ queryKey: ["identity-failures"], queryFn: () => unwrap(api.GET("/v1/identity/failures")), refetchInterval: LIST_MS });

export const useAdmins = (enabled: boolean) =>
  useQuery({ queryKey: ["admins"], queryFn: () => unwrap(api.GET("/v1/admins")), enabled });

export const useSessions = (enabled: boolean) =>
  useQuery({ queryKey: ["sessions"], queryFn: () => unwrap(api.GET("/v1/sessions")), enabled });

/** The gateways that share the state. */
export const useNodes = () => useQuery({ queryKey: ["nodes"], queryFn: () => unwrap(api.GET("/v1/nodes")), refetchInterval: LIST_MS });

export const useUpstreams = (refetchInterval: ListInterval = LIST_MS) =>
  useQuery({ queryKey: ["upstreams"], queryFn: () => unwrap(api.GET("/v1/upstreams")), refetchInterval });

/** The accounts of callers at a server, which only operators may read. */
export const useAccounts = (server: string) =>
  useQuery({
    queryKey: ["accounts", server],
    queryFn: () => unwrap(api.GET("/v1/upstreams/{name}/accounts", { params: { path: { name: server } } })),
    refetchInterval: LIST_MS,
    enabled: mayDo("operator"),
  });

/** The policies in force, and what is wrong with their files. */
export const usePolicies = () =>
  useQuery({ queryKey: ["policies"], queryFn: () => unwrap(api.GET("/v1/policy")), refetchInterval: LIST_MS, enabled: mayDo("viewer") });

export const usePlugins = (refetchInterval: ListInterval = LIST_MS) =>
  useQuery({ queryKey: ["plugins"], queryFn: () => unwrap(api.GET("/v1/plugins")), refetchInterval });

export const useCollections = () =>
  useQuery({ queryKey: ["collections"], queryFn: () => unwrap(api.GET("/v1/collections")) });

/** Figures of the last second, over time and since the start. Events bring the newest. */
export const useStats = () =>
  useQuery({
    queryKey: STATS_KEY,
    queryFn: () => unwrap(api.GET("/v1/stats", { params: { query: { window: STATS_S } } })),
    refetchInterval: followedInterval,
  });

/** The figures that Prometheus reads. */
export async function readSamples(): Promise<Sample[]> {
  const response = await fetch("/metrics").catch(() => unreachable());
  if (!response.ok) throw new ProblemError(await readProblem(response));
  return parseMetrics(await response.text());
}

/** The effective configuration, limited to the keys that pages name. */
export interface Configuration {
  http: { listen: string; public_url: string | null };
  identity: { required: boolean; issuers?: { issuer: string }[] };
  contracts: { impact_days: number; drift_interval_s: number };
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
