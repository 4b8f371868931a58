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

  /** What was looked at is no longer what is there. */
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

export async function readProblem(response: Response): Promise<Problem> {
  const text = await response.text();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // Whatever stands between may answer in words of its own.
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
