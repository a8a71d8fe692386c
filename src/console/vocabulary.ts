/**
 * Building blocks of the request schemas of the admin API and the owners' console. Each schema is next to its route;
 * those of answers are in `answers/`. Each `description` completes "must be ..." in a refusal, and `x-remedy` says what
 * to send instead.
 */
import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from "typebox";
import { ACCOUNT_NAME } from "../values/words/account-name.ts";
import { CURSOR_CHARS_MAX } from "./cursor.ts";

export type { Static, TObject, TProperties, TSchema, TUnsafe };
export { Type };

/** Maximum number of codes per page: the store's own limit. */
export const CODES_PAGE_MAX = 200;

export const closed = { additionalProperties: false } as const;

export const Name = Type.String({
  pattern: ACCOUNT_NAME.source,
  description: "1 to 64 characters of A-Z a-z 0-9 . _ @ + -, the first a letter or digit",
  "x-remedy": "Choose a name such as alice or team-7@example.com.",
  examples: ["alice"],
});

/** Names of plans, groups and cards. Handlers check that the configuration has them. */
export const Configured = Type.String({
  minLength: 1,
  maxLength: 128,
  description: "the name of a plan, group or card of the configuration, as a string",
  "x-remedy": "Use a name from tollgate.yaml.",
  examples: ["pro"],
});

export const KeyId = Type.String({
  pattern: "^key_[0-9A-Za-z]{18}$",
  description: "the id of a key: key_ and 18 letters or digits",
  "x-remedy": "Take the id from tollgate key list --account NAME; never send the key itself.",
  examples: ["key_4tR0000abcXyZ01234"],
});

export const KeyName = Type.String({
  // No control or format characters and none that change the direction of the text that follows, except the joiner of
  // emoji; not only spaces.
  pattern: "^(?=.*[\\p{L}\\p{N}\\p{P}\\p{S}])[^\\s\\p{C}](?:[^\\p{C}\\p{Zl}\\p{Zp}]|\\u200d){0,63}$",
  description: "a name of 1 to 64 printable characters that does not begin with a space",
  "x-remedy": "Choose a name such as Laptop of Alice.",
  examples: ["Laptop of Alice"],
});

export const Instant = Type.String({
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,3})?Z$",
  description: "an instant in UTC such as 2027-01-31T12:00:00Z",
  "x-remedy": "Write the date, T, the time and Z.",
  examples: ["2027-01-31T12:00:00Z"],
});

export const BatchId = Type.String({
  pattern: "^batch_[0-9A-Za-z]{16}$",
  description: "the id of a batch: batch_ and 16 letters or digits",
  "x-remedy": "Take the id from tollgate code batch list.",
  examples: ["batch_0NsPaGdz8KfW2q1T"],
});

export const Day = Type.String({
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
  description: "a UTC day, YYYY-MM-DD",
  "x-remedy": "Write a day like 2026-08-31.",
  examples: ["2026-08-31"],
});

/** The text of an amount. `values/money.ts` validates its form. */
export const Usd = Type.String({
  maxLength: 64,
  description: 'an amount of US dollars as a string, such as "10.00"',
  "x-remedy": 'Write the amount as a string, "10.00": a JSON number cannot represent money exactly.',
  examples: ["10.00"],
});

/**
 * For requests whose answer contains a secret that is shown only once: the id identifies a repeat of the same request.
 */
export const IdempotencyId = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:@+/=-]{0,127}$",
  description: "your id for this request: 1 to 128 characters of A-Z a-z 0-9 . _ : @ + / = -",
  "x-remedy": "Send the same id when you repeat a request. Without an id, each request counts.",
  examples: ["order-4711"],
});

export function wholeNumber(digits: number, description: string) {
  return Type.String({
    pattern: `^(0|[1-9][0-9]{0,${digits - 1}})$`,
    description,
    "x-remedy": "Write a whole number in digits.",
  });
}

/** The number of rows of a page if the request does not say it. */
export const PAGE_DEFAULT = 100;

/**
 * The size of a page. Validated as text, because nothing is coerced, and its range by `readLimit`. `x-openapi` is what the
 * OpenAPI document has instead, so that generated clients have a number with its bounds.
 */
export function pageSize(max: number) {
  const text = wholeNumber(String(max).length, `a whole number from 1 to ${max}`);
  return { ...text, "x-openapi": { type: "integer", minimum: 1, maximum: max, default: PAGE_DEFAULT } };
}

/** The cursor of a page that may end in the middle of an account (`cursor.ts`). */
export const Place = Type.String({
  pattern: `^[A-Za-z0-9_-]{1,${CURSOR_CHARS_MAX}}$`,
  description: "the `next` of an earlier page",
  "x-remedy": "Leave it out for the first page.",
});

/** The cursor of a page that ends with a complete row. */
export const Cursor = Type.String({
  maxLength: 256,
  description: "the `next` of an earlier page",
  "x-remedy": "Leave it out for the first page.",
});

export const AccountPath = Type.Object({ name: Name }, closed);

export const KeyPath = Type.Object({ id: KeyId }, closed);

/** What usage can be grouped by. */
export const USAGE_BY = ["account", "group", "model", "key", "day", "upstream"] as const;

export type UsageBy = (typeof USAGE_BY)[number];
