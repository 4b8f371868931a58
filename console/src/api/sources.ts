// Where the data of a contract comes from. Pages ask this file alone, so that it alone knows which routes there are.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { columnsOf, type SourceColumn } from "../schema/columns";
import { isRecord } from "../schema/exact";
import { mayDo } from "../session";
import { api, unwrap } from "./client";
import { pauseFor, SETTLE_MS } from "./settle";
import { ProblemError } from "./problem";
import type { Configuration } from "./queries";
import type { ContractDocument, Json } from "./shapes";

export interface ConnectionChoice {
  name: string;
  adapter: string;
  /** Whether it may be written to; null where the gateway does not say. */
  write: boolean | null;
  /** Why it could not be opened. */
  refused: string | null;
  /** Whether files may be put into it. */
  uploads: boolean;
  /** Whether the gateway lists what is behind it, and shows rows. */
  isListed: boolean;
}

export interface SourceRows {
  columns: string[];
  rows: { [column: string]: Json }[];
  masked: string[];
  more: boolean;
}

/** What a collection calls its source in its settings. */
export const sourceSetting = (adapter: string) => (adapter === "sql" ? "table" : "path");

/** Routes that this build of the document may not have. A gateway without one answers 404. */
const routes = api as unknown as Record<"GET" | "POST" | "PUT", (path: string, init?: object) => Promise<{ data?: unknown; error?: unknown; response: Response }>>;

async function askRoute<T>(method: "GET" | "POST" | "PUT", path: string, init: object = {}): Promise<T | null> {
  try {
    return await unwrap(routes[method](path, init) as Promise<{ data?: T; response: Response }>);
  } catch (caught) {
    if (caught instanceof ProblemError && caught.problem.status === 404 && caught.problem.detail.includes(path)) return null;
    throw caught;
  }
}

export const useConnections = () =>
  useQuery({
    queryKey: ["connections"],
    queryFn: async (): Promise<ConnectionChoice[]> => {
      const listed = await askRoute<Omit<ConnectionChoice, "isListed">[]>("GET", "/v1/connections");
      if (listed) return listed.map(({ name, adapter, write, refused, uploads }) => ({ name, adapter, write, refused, uploads, isListed: true }));
      const { connections, plugins } = (await unwrap(api.GET("/v1/config"))) as unknown as Configuration;
      return connections.map((name) => {
        const [adapter, plugin] = Object.entries(plugins).find(([, { grants }]) => name in grants) ?? ["sheet", null];
        return { name, adapter, write: plugin ? plugin.grants[name] === "write" : null, refused: null, uploads: false, isListed: false };
      });
    },
  });

/** The tables or files behind a connection whose names have a part; at most a page of them. */
export const useSourceNames = (connection: ConnectionChoice | undefined, text: string) =>
  useQuery({
    queryKey: ["sources", connection?.name, text],
    queryFn: async () => {
      const query = { q: text };
      const page = await unwrap(routes.GET("/v1/connections/{name}/sources", { params: { path: { name: connection?.name }, query } }));
      return (page as { sources: { name: string; kind: string }[] }).sources;
    },
    enabled: connection?.isListed === true && connection.adapter !== "rest",
    placeholderData: (before) => before,
    retry: false,
  });

/** The first rows of a source, without values of columns that are named like secrets. */
export const readRows = (connection: string, source: string) => askRoute<SourceRows>("POST", "/v1/sources/rows", { body: { connection, source, limit: 10 } });

/** Puts a file into a connection, in the place of the one of that name. */
export const uploadFile = (connection: string, file: File) =>
  askRoute("PUT", "/v1/files/{connection}/{path}", {
    params: { path: { connection, path: file.name } },
    body: file,
    bodySerializer: (body: File) => body,
    headers: { "Content-Type": "application/octet-stream" },
  });

/** A contract to begin with, and what it leaves out or guesses. */
export const draftSource = (connection: string, source: string) =>
  askRoute<{ source: string; notes: string[] }>("POST", "/v1/sources/draft", { body: { connection, source } });

/** The columns of a collection of a contract's text: a preview of a list over it has them in its result. */
export const useColumns = (entry: Json | undefined) => useQuery(columnsQuery(entry));

/** A source that is typed is described when it has settled: the gateway opens it each time. */
export const columnsQuery = (entry: Json | undefined) =>
  queryOptions({
    queryKey: ["columns", JSON.stringify(entry ?? null)],
    queryFn: async ({ signal }): Promise<SourceColumn[]> => {
      await pauseFor(SETTLE_MS, signal);
      const { columns: _, hide: __, ...whole } = entry as { [name: string]: Json };
      const tool = { tool: "columns", verb: "list", collection: "c", fields: [] };
      const source = JSON.stringify({ contract: "columns-of-a-source", collections: { c: { ...whole, write: false } }, tools: [tool] });
      const preview = await unwrap(api.POST("/v1/contracts/preview", { body: { source }, signal }));
      const [listed] = (preview.document as ContractDocument | null)?.tools ?? [];
      return listed?.outputSchema ? columnsOf(listed.outputSchema) : [];
    },
    enabled: mayDo("editor") && isRecord(entry) && typeof entry.adapter === "string" && entry.adapter !== "",
    staleTime: 60_000,
    retry: false,
  });
