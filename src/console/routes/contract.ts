/**
 * A route of the admin API as a value: where it is, what it takes, what it does. Knows no HTTP framework; `app.ts`
 * hangs the routes on one, after the schemas have judged the input.
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
  /** The catalog of this instant; a reload replaces it. */
  readonly catalog: () => Catalog;
  readonly random: RandomBytes;
  readonly clock: Clock;
  /** The codes that accounts could not redeem: one for all who take codes, as each would let as many be tried. */
  readonly codeGuesses: CodeGuesses;
  /** Called for every code that an account could not redeem. */
  readonly onCodeFailure?: (failure: CodeFailure) => void;
}

/** A guess, or an honest mistake; only the count can show which. */
export interface CodeFailure {
  /** The account's id. */
  readonly account: string;
  /** `failed`: the code was looked up in vain. `blocked`: it was not even looked up. */
  readonly outcome: "failed" | "blocked";
  /** Whether the account is blocked from this failure on. */
  readonly blocksNow: boolean;
}

/** What is asked, in the form that the route's schemas describe. */
export interface RouteInput<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

/** An answer of form B. */
export interface ConsoleAnswer<B = unknown> {
  readonly status: 200 | 201;
  readonly body: B;
  /** True when this write had been made before and changed nothing now. */
  readonly repeated?: boolean;
  /** Facts for the audit line that only the answer knows, such as the id of a new key. Never a secret. */
  readonly audit?: AuditFacts;
}

/** Facts of an audit line: names, ids and amounts, never a key or a token. */
export type AuditFacts = Readonly<Record<string, string>>;

/** What makes a route a write: its audit line, and how to repeat it. */
interface WriteFacts<I> {
  /** What is done, noun and verb: `account.create`. */
  readonly what: string;
  /** The account's name or key's id that it is done to. */
  readonly target: (input: I) => string;
  readonly facts?: (input: I) => AuditFacts;
  /** The remedy when the store did not answer: whether the same request may be sent again. */
  readonly whenUnknown: string;
}

/** The forms of good answers, by status. */
type Answers = Readonly<Record<number, TSchema>>;

/** What the OpenAPI document says of a route beside what it takes. */
export interface RouteWords<A extends Answers = Answers> {
  /** Unique; what generated clients call it. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly answers: A;
  /** Refusals of its own: status, and the codes with what they say. */
  readonly refusals?: Readonly<Record<number, string>>;
}

interface RouteSpec<P, Q, B, A extends Answers = Answers> extends RouteWords<A> {
  readonly method: "GET" | "POST" | "PUT";
  /** Below `/admin/v1`. */
  readonly path: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
}

/** A route with the types of its input forgotten. */
export interface ConsoleRoute extends RouteSpec<TSchema, TSchema, TSchema> {
  readonly write?: WriteFacts<RouteInput<unknown, unknown, unknown>>;
  readonly handle: (input: RouteInput<unknown, unknown, unknown>) => Promise<ConsoleAnswer>;
}

type TypedInput<P extends TSchema, Q extends TSchema, B extends TSchema> = RouteInput<Static<P>, Static<Q>, Static<B>>;

/** What a route with these forms may answer. */
type AnswerOf<A extends Answers> = ConsoleAnswer<Static<A[keyof A & number]>>;

/**
 * Declares a route; what the handler takes and answers has the types of the schemas. Input that no schema describes is
 * `unknown`.
 * Handlers throw Refusal (an answer), StoreError (503), or anything else (a defect, 500).
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
  // The one place where the schemas' verdict becomes a type: `app.ts` calls `handle` with validated input only.
  return spec as unknown as ConsoleRoute;
}
