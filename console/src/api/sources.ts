// Where the data of a contract comes from: connections, the tables or files behind them, and their rows.
import { queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { columnsOf, type SourceColumn } from "../schema/columns";
import { isRecord } from "../schema/exact";
import { mayDo } from "../session";
import { api, unwrap } from "./client";
import { LIST_MS } from "./queries";
import { pauseFor, SETTLE_MS } from "./settle";
import type { ConnectionView, ContractDocument, Json, SourceRows } from "./shapes";
import { putFile } from "./upload";

/** Rows that are shown of a source. */
const ROWS_SHOWN = 10;
/** The most rows that the gateway shows at once. */
export const ROWS_MAX = 20;

/** The name of a collection's source in its settings. */
export const sourceSetting = (adapter: string) => (adapter === "sql" ? "table" : "path");

export const useConnections = () =>
  useQuery({ queryKey: ["connections"], queryFn: () => unwrap(api.GET("/v1/connections")), refetchInterval: LIST_MS });

/** Checks whether the other end of a connection answers. */
export const checkConnection = (name: string) => unwrap(api.POST("/v1/connections/{name}/check", { params: { path: { name } } }));

/** The tables or files behind a connection whose names contain a text, a page at a time. A web service lists none. */
export function useSources(connection: ConnectionView | undefined, text: string) {
  const name = connection?.name ?? "";
  const isListed = connection !== undefined && connection.kind !== "http" && connection.refused == null;
  const query = useInfiniteQuery({
    queryKey: ["sources", name, text],
    queryFn: ({ pageParam }) => {
      const params = { path: { name }, query: { q: text || undefined, cursor: pageParam } };
      return unwrap(api.GET("/v1/connections/{name}/sources", { params }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    enabled: isListed && mayDo("editor"),
    placeholderData: (before) => before,
    retry: false,
  });
  return { ...query, data: query.data?.pages.flatMap(({ sources }) => sources) };
}

/** The first rows of a source, without values of columns that are named like secrets. */
export const readRows = async (connection: string, source: string, limit = ROWS_SHOWN) =>
  (await unwrap(api.POST("/v1/sources/rows", { body: { connection, source, limit } }))) as unknown as SourceRows;

export const useRows = (connection: string, source: string) =>
  useQuery({
    queryKey: ["rows", connection, source],
    queryFn: () => readRows(connection, source),
    enabled: source !== "" && mayDo("editor"),
    // Each look is recorded in the trail, so it is made when it is asked for.
    staleTime: Infinity,
    retry: false,
  });

/** The address of a file of a connection. Its folders are kept as folders. */
export const fileAddress = (connection: string, path: string) =>
  `/v1/files/${[connection, ...path.split("/")].map(encodeURIComponent).join("/")}`;

/** Puts a file into a connection, replacing the one with that name. */
export const uploadFile = (connection: string, file: File, progress: (part: number) => void) =>
  putFile(fileAddress(connection, file.name), file, "application/octet-stream", progress);

/** A contract as a starting point, and what it leaves out or guesses. */
export const draftSource = (connection: string, source: string) => unwrap(api.POST("/v1/sources/draft", { body: { connection, source } }));

/** The columns of a collection in a contract's text: a preview of a list over it has them in its result. */
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
