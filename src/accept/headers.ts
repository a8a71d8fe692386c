/**
 * A request's headers as they came, by lower-cased name. It never joins, drops or overrules a duplicate as
 * `req.headers` does, and keeps names such as `__proto__` harmless (docs/failure-model.md row 22).
 */
import { type Refusal, refusal } from "../values/errors.ts";

/** Headers that prove who the client is: `key.ts` reads them, nobody else ever sees them. */
const KEY_NAMES: ReadonlySet<string> = new Set(["authorization", "x-api-key", "proxy-authorization"]);
const SECRET_NAMES: ReadonlySet<string> = new Set([...KEY_NAMES, "cookie"]);

export class RequestHeaders {
  readonly #values = new Map<string, string[]>();

  /** @param raw names and values in turn, as in `req.rawHeaders`. */
  constructor(raw: readonly string[]) {
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const name = (raw[i] as string).toLowerCase();
      const value = raw[i + 1] as string;
      const known = this.#values.get(name);
      if (known) known.push(value);
      else this.#values.set(name, [value]);
    }
  }

  /** The first value of a header; the name in lower case. */
  get(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  /** All values of a header in the order they came; empty when it is absent. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** All names and values, duplicates included, in the order of first appearance. */
  *entries(): IterableIterator<readonly [string, string]> {
    for (const [name, values] of this.#values) for (const value of values) yield [name, value];
  }

  /** The same headers without the credentials: what leaves this folder. */
  withoutSecrets(): RequestHeaders {
    return this.#without(SECRET_NAMES);
  }

  /** The same headers without what may be a key: cookies are the console's own. */
  withoutKeys(): RequestHeaders {
    return this.#without(KEY_NAMES);
  }

  #without(names: ReadonlySet<string>): RequestHeaders {
    const rest = new RequestHeaders([]);
    for (const [name, values] of this.#values) if (!names.has(name)) rest.#values.set(name, values);
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
  const values = headers.all(NAME);
  if (values.length === 0) return undefined;
  const [key = ""] = values;
  if (values.length > 1) return malformed("It was sent more than once.");
  return FORM.test(key) ? key : malformed("It is not 1 to 255 printable ASCII characters.");
}

function malformed(detail: string): Refusal {
  return refusal("idempotency_key", { param: "Idempotency-Key", detail });
}
