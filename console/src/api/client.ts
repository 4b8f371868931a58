// The client of the admin API, typed from its OpenAPI document.
import createClient from "openapi-fetch";
import { currentToken, forget } from "../session";
import { ProblemError, toProblem, unreachable } from "./problem";
import type { paths } from "./schema";

export const api = createClient<paths>({ baseUrl: location.origin });

api.use({
  onRequest({ request }) {
    const token = currentToken();
    if (token) request.headers.set("Authorization", `Bearer ${token}`);
    return request;
  },
  onResponse({ response }) {
    if (response.status === 401) forget("The session has ended. Sign in again.");
  },
});

type Exchange<T> = Promise<{ data?: T; error?: unknown; response: Response }>;

/** Returns the body of an answer and the answer. Throws a `ProblemError` for any status other than a success. */
export async function exchange<T>(call: Exchange<T>): Promise<{ data: T; response: Response }> {
  const { data, error, response } = await call.catch(() => unreachable());
  if (!response.ok) throw new ProblemError(toProblem(error, response.status, response.statusText));
  return { data: data as T, response };
}

export async function unwrap<T>(call: Exchange<T>): Promise<T> {
  return (await exchange(call)).data;
}
