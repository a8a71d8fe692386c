/**
 * A request's headers as received, by lowercase name. Unlike `req.headers`, it never joins, drops or overrides
 * duplicates, and names such as `__proto__` are harmless (docs/failure-model.md row 22).
 */
import { type Refusal, refusal } from "../values/errors.ts";

/** Headers that authenticate the client: only `key.ts` reads them, nothing else ever sees them. */
const KEY_NAMES: readonly string[] = ["authorization", "x-api-key", "proxy-authorization"];
const SECRET_NAMES: readonly string[] = [...KEY_NAMES, "cookie"];
const NONE: readonly string[] = [];

/**
 * Two lists, because a request has about ten headers, most of which are never read. With all lookups of a request, two
 * lists take 1.5 us for 18 headers; a map of lists takes 3.7.
 */
export class RequestHeaders {
  readonly #names: string[] = [];
  readonly #values: string[] = [];

  /** @param raw names and values alternating, as in `req.rawHeaders`. */
  constructor(raw: readonly string[]) {
    for (let i = 0; i + 1 < raw.length; i += 2) {
      this.#names.push((raw[i] as string).toLowerCase());
      this.#values.push(raw[i + 1] as string);
    }
  }

  /** The first value of a header. @param name in lowercase. */
  get(name: string): string | undefined {
    const at = this.#names.indexOf(name);
    return at === -1 ? undefined : this.#values[at];
  }

  /** All values of a header in order; empty if it is absent. */
  all(name: string): readonly string[] {
    const at = this.#names.indexOf(name);
    return at === -1 ? NONE : this.#values.filter((_, i) => i >= at && this.#names[i] === name);
  }

  has(name: string): boolean {
    return this.#names.includes(name);
  }

  /** Whether a header came more than once. */
  repeats(name: string): boolean {
    const at = this.#names.indexOf(name);
    return at !== -1 && this.#names.includes(name, at + 1);
  }

  /** All names and values, duplicates included, in the order of first appearance. */
  *entries(): IterableIterator<readonly [string, string]> {
    for (const name of new Set(this.#names)) for (const value of this.all(name)) yield [name, value];
  }

  /** The same headers without the credentials. Only these leave this folder. */
  withoutSecrets(): RequestHeaders {
    return this.#without(SECRET_NAMES);
  }

  /** The same headers without those that may hold a key. Cookies stay: they belong to the console. */
  withoutKeys(): RequestHeaders {
    return this.#without(KEY_NAMES);
  }

  #without(names: readonly string[]): RequestHeaders {
    const rest = new RequestHeaders(NONE);
    for (let i = 0; i < this.#names.length; i++) {
      const name = this.#names[i] as string;
      if (names.includes(name)) continue;
      rest.#names.push(name);
      rest.#values.push(this.#values[i] as string);
    }
    return rest;
  }
}

/*
 * The `Idempotency-Key` header: 1 to 255 printable ASCII characters, once
 * (docs/decisions/idempotency-keeps-no-bodies.md).
 */

const NAME = "idempotency-key";
const FORM = /^[\x20-\x7e]{1,255}$/;

/** The key as the client wrote it; undefined when there is none; a refusal when it cannot be used. */
export function idempotencyKeyOf(headers: RequestHeaders): string | Refusal | undefined {
  const key = headers.get(NAME);
  if (key === undefined) return undefined;
  if (headers.repeats(NAME)) return malformed("It was sent more than once.");
  return FORM.test(key) ? key : malformed("It is not 1 to 255 printable ASCII characters.");
}

function malformed(detail: string): Refusal {
  return refusal("idempotency_key", { param: "Idempotency-Key", detail });
}
