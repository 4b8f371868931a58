// What a contract may say, as the gateway's readers accept it.
import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type FormView = Schemas["FormView"];
export type FormKey = Schemas["FormKeyView"];
export type FieldType = Schemas["FieldTypeView"];

/** It changes with the program alone. */
export const useFormView = () => useQuery({ queryKey: ["form"], queryFn: () => unwrap(api.GET("/v1/form")), staleTime: Infinity });
