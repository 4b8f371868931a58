// Refusals of the gateway: RFC 9457 problem documents.

/** One fault of a contract or of the configuration. */
export interface Fault {
  file: string;
  place: string;
  line?: number;
  message: string;
  hint?: string;
}

export interface Problem {
  status: number;
  title: string;
  detail: string;
  problems: Fault[];
}

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
  }

  /** What was shown is no longer the current state. */
  get isMoved(): boolean {
    return this.problem.status === 409 || this.problem.status === 412;
  }
}

export function toProblem(body: unknown, status: number, statusText: string): Problem {
  const document = typeof body === "object" && body !== null ? (body as Partial<Problem>) : {};
  return {
    status,
    title: document.title ?? (statusText || `Status ${status}`),
    detail: document.detail ?? (typeof body === "string" ? body : ""),
    problems: document.problems ?? [],
  };
}

/** The meaning of an HTTP status for a person. */
const TITLES: Record<number, string> = {
  400: "The gateway cannot read this",
  401: "You are not signed in",
  403: "You may not do this",
  404: "It is not there",
  409: "It changed meanwhile",
  412: "It changed meanwhile",
  413: "It is too large",
  422: "It cannot be accepted as it is",
  429: "Too many requests at once",
  500: "The gateway failed",
  503: "It is not available now",
};

/** The title of a problem, without the words of HTTP. */
export const plainTitle = ({ status, title }: Problem): string => TITLES[status] ?? title;

export async function readProblem(response: Response): Promise<Problem> {
  const text = await response.text();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // A proxy in between may answer with its own text.
  }
  return toProblem(body, response.status, response.statusText);
}

export function unreachable(): never {
  throw new ProblemError({
    status: 0,
    title: "The gateway does not answer",
    detail: "Nothing answers at this address now. Check that `weir serve` runs, then try again.",
    problems: [],
  });
}

export function asProblem(error: unknown): Problem {
  if (error instanceof ProblemError) return error.problem;
  const detail = error instanceof Error ? error.message : String(error);
  return { status: 0, title: "The console failed", detail, problems: [] };
}
