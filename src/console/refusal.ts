/**
 * Refusals of the admin API. All have one form, `{error: {code, message, remedy}}`, with one sentence for what is wrong
 * and one for what to do. A defect of the gateway is an ordinary exception, never an AdminRefusal.
 */

import { type StoreError, UnconfirmedError, type Unconfirming } from "../store/contract.ts";
import type { Key } from "../store/records.ts";
import { errorStack } from "../values/program/error-text.ts";
import { COMMAND } from "../values/program/program.ts";
import type { AdminErrorAnswer } from "./answers/answers.ts";

/** A refusal. Thrown by routes and access checks, sent by `app.ts` and `listener.ts`. */
export class AdminRefusal extends Error {
  override readonly name = "Refusal";
  /** HTTP status of the answer. */
  readonly status: number;
  /** A stable code for programs. */
  readonly code: string;
  /**
   * What the operator can do about it. It ends with a full stop, or with a command to type, after which nothing
   * follows.
   */
  readonly remedy: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    remedy: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.remedy = remedy;
    this.headers = headers;
  }
}

/** The JSON of a refusal. */
export function refusalBody(refusal: AdminRefusal): AdminErrorAnswer {
  return { error: { code: refusal.code, message: refusal.message, remedy: refusal.remedy } };
}

/** 500: the answer for a defect. */
export const INTERNAL = new AdminRefusal(
  500,
  "internal",
  "The gateway failed on this request; the log has details.",
  "Look for console_defect in the gateway's log.",
);

/** The credentials of a URL, which error messages of drivers may contain (docs/failure-model.md row 79). */
const URL_CREDENTIALS = /\/\/[^/@\s]+@/g;

/** The log line for a defect. */
export function defectLine(error: unknown, method: string | undefined, route: string | undefined): object {
  const stack = errorStack(error).replaceAll(URL_CREDENTIALS, "//***@");
  return { event: "console_defect", method, route, stack };
}

/** 400: a member, parameter or path segment is malformed. */
export function malformed(where: string, rule: string, remedy: string): AdminRefusal {
  return new AdminRefusal(400, "malformed", `\`${where}\` must be ${rule}.`, remedy);
}

/** 404: no account of that name. */
export function noSuchAccount(name: string): AdminRefusal {
  return new AdminRefusal(
    404,
    "unknown_account",
    `There is no account named \`${name}\`.`,
    `Use an existing account (${COMMAND} account list), or create it: ${COMMAND} account create ${name}`,
  );
}

/** 409: the account is closed, and the request would give it something or change it. */
export function accountClosed(name: string): AdminRefusal {
  return new AdminRefusal(
    409,
    "account_closed",
    `The account \`${name}\` is closed, which is final; nothing was changed.`,
    `Use another account. To pay out what this one has left, use a negative amount: ${COMMAND} account adjust ${name} --usd -AMOUNT --id ID --note WHY`,
  );
}

/** 404: no key with that id. */
export function noSuchKey(id: string): AdminRefusal {
  return new AdminRefusal(
    404,
    "unknown_key",
    `There is no key with the id \`${id}\`.`,
    `List an account's keys: ${COMMAND} key list --account NAME`,
  );
}

/** 409: a revoked key cannot be changed. */
export function keyRevoked(key: Key): AdminRefusal {
  return new AdminRefusal(
    409,
    "key_revoked",
    `The key \`${key.id}\` is revoked permanently and was not changed; it is in the group \`${key.group}\`.`,
    "Create another key.",
  );
}

/**
 * 503: the store gave no usable answer.
 * @param remedy how to repeat this write safely, or undefined for a read.
 * @param unfit why the store must not be used, in the words of `/readyz`, if it is known and the caller may see it.
 */
export function storeRefusal(error: StoreError, remedy: string | undefined, unfit?: string): AdminRefusal {
  if (error instanceof UnconfirmedError) return notConfirmed(error.by, remedy);
  const older = error.kind === "older";
  const what = unfit === undefined ? "The store did not answer" : `It cannot be done: ${unfit}`;
  const message = older
    ? "The store has lost data, so nothing is changed until an operator confirms its state."
    : remedy === undefined
      ? `${what}.`
      : unfit === undefined
        ? `${what}; it is unknown whether a change was made.`
        : `The store gave no valid answer (${unfit}); it is unknown whether a change was made.`;
  const advice = older ? "Restore the store, or confirm its state, then repeat the request." : "Repeat the request.";
  return new AdminRefusal(503, older ? "store_older" : "store_unavailable", message, remedy ?? advice, {
    "retry-after": "1",
  });
}

const NOT_CONFIRMED = {
  replicas: "The change was made on the store's primary, but no replica confirmed it in time. A failover may undo it.",
  server:
    "The change was made, but then the store's server did not answer, or the connection to it was lost. A restart or failover of the server may undo it.",
} as const satisfies Record<Unconfirming, string>;

/** 503: the store has the write, but may still lose it. */
function notConfirmed(by: Unconfirming, remedy: string | undefined): AdminRefusal {
  return new AdminRefusal(503, "not_confirmed", NOT_CONFIRMED[by], remedy ?? "Repeat the request: it counts once.", {
    "retry-after": "1",
  });
}

/*
 * Turns the validator's findings into a sentence that names the member at fault. The value is never shown, because a
 * key or token may have been pasted into the wrong place.
 */

/** One finding of ajv with `verbose`; only the parts that are used here. */
export interface SchemaFinding {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly parentSchema?: Readonly<Record<string, unknown>>;
}

/** Maximum length of a client's member name in answers. */
const NAME_LENGTH_MAX = 64;

/**
 * The refusal for the first finding.
 * @param part where it was found: `body`, `params` or `querystring`.
 */
export function complain(part: string, findings: readonly SchemaFinding[]): AdminRefusal {
  const finding = whole(findings);
  const place = PLACES[part] ?? part;
  if (finding === undefined) return malformed(place, "well-formed", "Correct the request.");
  const { keyword, params } = finding;
  if (keyword === "additionalProperties") {
    const name = printable(String(params.additionalProperty));
    const known = Object.keys((finding.parentSchema?.properties as object | undefined) ?? {}).join(", ");
    const remedy = `Remove it; known here: ${known || "none"}.`;
    return new AdminRefusal(400, "unknown_member", `The ${place} has no member \`${name}\`.`, remedy);
  }
  if (keyword === "required") {
    const name = String(params.missingProperty);
    const properties = finding.parentSchema?.properties as Record<string, Record<string, unknown>> | undefined;
    const rule = words(properties?.[name], "description") ?? "present";
    return new AdminRefusal(400, "missing_member", `\`${name}\` is missing in the ${place}.`, `Add it: ${rule}.`);
  }
  const path = finding.instancePath.slice(1).replaceAll("/", ".");
  if (path === "")
    return malformed(place, "a JSON object", "Send a JSON object with `content-type: application/json`.");
  const rule = words(finding.parentSchema, "description") ?? "well-formed";
  return malformed(path, rule, words(finding.parentSchema, "x-remedy") ?? "Correct it and send the request again.");
}

/**
 * The first finding. For a choice between values, the finding on the choice, because its values have no descriptions.
 */
function whole(findings: readonly SchemaFinding[]): SchemaFinding | undefined {
  const [first] = findings;
  if (first?.keyword !== "const") return first;
  return findings.find((one) => one.keyword === "anyOf" && one.instancePath === first.instancePath) ?? first;
}

const PLACES: Readonly<Record<string, string>> = { body: "body", params: "path", querystring: "query" };

function words(schema: Readonly<Record<string, unknown>> | undefined, name: string): string | undefined {
  const text = schema?.[name];
  return typeof text === "string" ? text : undefined;
}

/** A member's name for answers: shortened, without control characters. */
export function printable(name: string): string {
  return name.slice(0, NAME_LENGTH_MAX).replaceAll(/\p{C}/gu, "?");
}
