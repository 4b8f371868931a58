// What a contract may contain, as the gateway's parser accepts it.
import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { JsonSchema } from "./shapes";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type FormView = Schemas["FormView"];
export type FormKey = Schemas["FormKeyView"];
export type FieldType = Schemas["FieldTypeView"];

/** It only changes with the program. */
export const useFormView = () => useQuery({ queryKey: ["form"], queryFn: () => unwrap(api.GET("/v1/form")), staleTime: Infinity });

/** The JSON Schema of a contract's text. */
export const useFormSchema = () =>
  useQuery({ queryKey: ["form", "schema"], queryFn: async () => (await unwrap(api.GET("/v1/form/schema"))) as unknown as JsonSchema, staleTime: Infinity });
