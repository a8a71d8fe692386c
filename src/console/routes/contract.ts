/**
 * A route of the admin API as a value: its path, its input, its handler. Independent of the HTTP framework; `app.ts`
 * adds the routes to one and validates the input with the schemas.
 */

import type { Store } from "../../store/contract.ts";
import type { Catalog } from "../../values/catalog.ts";
import type { RandomBytes } from "../../values/key.ts";
import type { Clock } from "../../values/time.ts";
import type { CodeGuesses } from "../guess-budget.ts";
import type { Static, TSchema } from "../vocabulary.ts";

/** What routes work with. */
export interface ConsoleParts {
  readonly store: Store;
  /** The current catalog; a reload replaces it. */
  readonly catalog: () => Catalog;
  readonly random: RandomBytes;
  readonly clock: Clock;
  /**
   * Counts codes that accounts could not redeem. Shared by all routes that redeem codes; otherwise each would have its
   * own limit.
   */
  readonly codeGuesses: CodeGuesses;
  /** Called for every code that an account could not redeem. */
  readonly onCodeFailure?: (failure: CodeFailure) => void;
}

/** A guess or an honest mistake; only the count can tell. */
export interface CodeFailure {
  /** The account's id. */
  readonly account: string;
  /** `failed`: the code was looked up without success. `blocked`: it was not looked up. */
  readonly outcome: "failed" | "blocked";
  /** Whether the account is blocked from this failure on. */
  readonly blocksNow: boolean;
}

/** The input, in the form that the route's schemas describe. */
export interface RouteInput<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

/** An answer with a body of form B. */
export interface ConsoleAnswer<B = unknown> {
  readonly status: 200 | 201;
  readonly body: B;
  /** True if an earlier request had already made this write, so that this one changed nothing. */
  readonly repeated?: boolean;
  /** Facts for the audit line that only the handler knows, such as the id of a new key. Never a secret. */
  readonly audit?: AuditFacts;
}

/** Facts of an audit line: names, ids and amounts, never a key or a token. */
export type AuditFacts = Readonly<Record<string, string>>;

/** What a write needs in addition: its audit line, and how to repeat it. */
interface WriteFacts<I> {
  /** The action, noun and verb: `account.create`. */
  readonly what: string;
  /** The account's name or the key's id. */
  readonly target: (input: I) => string;
  readonly facts?: (input: I) => AuditFacts;
  /** The remedy if the store did not answer: whether the same request may be sent again. */
  readonly whenUnknown: string;
}

/** The forms of successful answers, by status. */
type Answers = Readonly<Record<number, TSchema>>;

/** The part of a route's OpenAPI description that is not its input. */
export interface RouteWords<A extends Answers = Answers> {
  /** Unique; the name of the operation in generated clients. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly answers: A;
  /** The route's own refusals: status, and the codes with explanations. */
  readonly refusals?: Readonly<Record<number, string>>;
}

interface RouteSpec<P, Q, B, A extends Answers = Answers> extends RouteWords<A> {
  readonly method: "GET" | "POST" | "PUT";
  /** The path below `/admin/v1`. */
  readonly path: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
}

/** A route without the types of its input. */
export interface ConsoleRoute extends RouteSpec<TSchema, TSchema, TSchema> {
  readonly write?: WriteFacts<RouteInput<unknown, unknown, unknown>>;
  readonly handle: (input: RouteInput<unknown, unknown, unknown>) => Promise<ConsoleAnswer>;
}

type TypedInput<P extends TSchema, Q extends TSchema, B extends TSchema> = RouteInput<Static<P>, Static<Q>, Static<B>>;

/** The answers that a route with these forms may return. */
type AnswerOf<A extends Answers> = ConsoleAnswer<Static<A[keyof A & number]>>;

/**
 * Declares a route. The handler's input and answer have the types of the schemas; input without a schema is `unknown`.
 * Handlers throw AdminRefusal (an answer), StoreError (503), or anything else (a defect, 500).
 */
export function route<
  A extends Answers,
  P extends TSchema = TSchema,
  Q extends TSchema = TSchema,
  B extends TSchema = TSchema,
>(
  spec: RouteSpec<P, Q, B, A> & {
    readonly write?: WriteFacts<TypedInput<P, Q, B>>;
    readonly handle: (input: TypedInput<P, Q, B>) => Promise<AnswerOf<A>>;
  },
): ConsoleRoute {
  // The only place where validated input gets its type: `app.ts` calls `handle` only with validated input.
  return spec as unknown as ConsoleRoute;
}
