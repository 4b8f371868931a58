// Calls the tools of the airports by plain HTTP, with types that openapi-typescript made from their document.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2]! });

const found = await client.POST("/lookup_airport", { body: { iata: "OSL" } });
const name: string | null | undefined = found.data?.name;

const list = await client.GET("/list_airports", { params: { query: { country: "NO", limit: 2 } } });
const listed: number | undefined = list.data?.records.length;

const wrong = await client.POST("/lookup_airport", { body: { iata: "osl" } });
const refused: string | undefined = wrong.error?.code;

console.log(JSON.stringify({ name, listed, refused }));
