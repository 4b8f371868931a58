// Types for editors and `// @ts-check`; what a tool's function is given follows from its parameters.

export interface Type<T, Left extends boolean = false> {
  readonly schema: object;
  readonly optional: Left;
  /** Only for the compiler. */
  readonly of?: T;
}
type Of<P> = P extends Type<infer T, infer Left> ? (Left extends true ? T | null : T) : never;
type Fields = Record<string, Type<any, boolean>>;
type Values<F extends Fields> = { [K in keyof F]: Of<F[K]> };

interface Options<T> {
  title?: string;
  description?: string;
  examples?: T[];
  /** Where it is not sent; such a parameter is not required. */
  default?: T;
  /** `weir call` takes it without a flag. */
  positional?: boolean;
  /** Further flags of `weir call`, such as "-e". */
  aliases?: string[];
  /** The word for the value in the help of `weir call`. */
  metavar?: string;
}
interface TextOptions extends Options<string> { minLength?: number; maxLength?: number; pattern?: string; format?: string }
interface NumberOptions extends Options<number> {
  minimum?: number; maximum?: number; exclusiveMinimum?: number; exclusiveMaximum?: number; multipleOf?: number;
}
interface ListOptions<T> extends Options<T[]> { minItems?: number; maxItems?: number }
interface MapOptions<T> extends Options<Record<string, T>> { minProperties?: number; maxProperties?: number }

export function text(options?: TextOptions): Type<string>;
export function integer(options?: NumberOptions): Type<number>;
export function number(options?: NumberOptions): Type<number>;
export function boolean(options?: Options<boolean>): Type<boolean>;
export function date(options?: Options<string>): Type<string>;
export function datetime(options?: Options<string>): Type<string>;
export function anything(options?: Options<unknown>): Type<any>;
export function choice<const T extends string | number>(values: readonly T[], options?: Options<NoInfer<T>>): Type<T>;
export function list<T>(items: Type<T, boolean>, options?: ListOptions<T>): Type<T[]>;
export function set<T>(items: Type<T, boolean>, options?: ListOptions<T>): Type<T[]>;
export function map<T>(values: Type<T, boolean>, options?: MapOptions<T>): Type<Record<string, T>>;
export function record<F extends Fields>(fields: F, options?: Options<Values<F>>): Type<Values<F>>;
export function anyOf<const A extends readonly Type<any, boolean>[]>(types: A, options?: Options<Of<A[number]>>): Type<Of<A[number]>>;
export function anyOf<T>(types: Type<T, boolean>[], options?: Options<T>): Type<T>;
/**
 * May be left out; the function gets null then. What is returned so may be null: the whole answers `not_found`, and a field
 * of a record is left out.
 */
export function optional<T>(type: Type<T, boolean>): Type<T, true>;

export interface Tool { readonly definition: object }
interface ToolOptions<F extends Fields, R> {
  name: string;
  title?: string;
  /** Its first paragraph is the title where none is given; of one with more than 200 characters, its first sentence. */
  description?: string;
  readOnly?: boolean;
  destructive?: boolean;
  idempotent?: boolean;
  openWorld?: boolean;
  /** A call may go on as a task after its request was answered; "required": modern clients that know no tasks are refused. */
  task?: boolean | "required";
  /** Which imports the operator is asked for. */
  requests?: ("sql" | "http" | "files")[];
  parameters?: F;
  /** The type of the value; without it the function returns none, and a value is left out of the answer or a failure. */
  returns?: Type<R, boolean>;
  run(given: Values<F>, context: Context): NoInfer<R> | null | void | Answer<NoInfer<R>> | Question;
}
export function tool<F extends Fields, R = undefined>(options: ToolOptions<F, R>): Tool;

interface More { field?: string; retryAfterMs?: number; details?: unknown }
export class Refusal extends Error { constructor(reason: string, sentence: string, more?: More) }
/** Says no: a reason for programs, a sentence for the caller. */
export function refuse(reason: string, sentence: string, more?: More): never;
export class Answer<T> { value: T; content: object[] }
/** A value together with MCP content blocks. */
export function answer<T>(value: T, content: object[]): Answer<T>;
export function blocks(...content: object[]): Answer<undefined>;
export class Question { readonly requests: Record<string, object>; readonly state?: string }
/** Asks the caller; the tool is called again with the answers, and with `state`. */
export function ask(requests: Record<string, object>, state?: string): Question;
export function form(message: string, fields: Fields): object;

export interface Context {
  readonly members: Record<string, unknown>;
  readonly agent: string;
  /** The operator's `[plugins.NAME.settings]`. */
  readonly settings: Record<string, any>;
  readonly resumed?: { state?: string; responses: Record<string, { action: string; content?: any }> };
  readonly isCancelled: boolean;
  log(message: string): void;
  progress(done: number, total?: number, message?: string): void;
}

export const log: Record<"debug" | "info" | "warn" | "error", (message: string) => void>;
export const clock: { nowMs(): number };
export const random: { bytes(length: number): Uint8Array };
/** Parameters are always bound: `sql.query("db", "SELECT name FROM things WHERE id = ?", [7])`. */
export const sql: {
  /**
   * Throws where a whole number is beyond 2^53, which is to be cast to text, and where there are more than 1000 rows and no
   * `limit`. With a limit the further rows are left out.
   */
  query(connection: string, text: string, parameters?: unknown[], limit?: number): any[];
  execute(connection: string, text: string, parameters?: unknown[]): number;
};
interface Pair { name: string; value: string }
export const http: {
  send(request: {
    connection: string; method?: string; path?: string; query?: Pair[]; headers?: Pair[]; body?: Uint8Array;
  }): { status: number; headers: Pair[]; body: Uint8Array };
};
export const files: {
  read(root: string, path: string, offset?: number, length?: number): Uint8Array;
  replace(root: string, path: string, content: Uint8Array, ifVersion?: string): string;
};

export function plugin(of: { name: string; version: string; tools: Tool[] }): { about: object; tools: object };
