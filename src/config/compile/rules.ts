/** Converts rules as written to rules as applied. Refuses rules that would undo a decision of admission. */
import type { Protocol } from "../../values/protocol.ts";
import type { Assignment, MemberPath, Rule, RuleAction } from "../../values/rules.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import type { ConfigPath } from "../problems.ts";
import type { ConfigFile } from "../schema/schema.ts";
import { readHeaderValues } from "./headers.ts";
import type { Loose, Reader } from "./reader.ts";

type RuleFile = Loose<NonNullable<ConfigFile["groups"][string]["rules"]>[number]>;

const ACTIONS = ["drop", "set", "default", "system", "header", "strip_attribution"] as const;

/**
 * Reads the rules of a group, a model or an upstream.
 * @param spoken the protocol of the upstream that they belong to; undefined for rules of a group or a model.
 */
export function readRules(
  reader: Reader,
  path: ConfigPath,
  rules: readonly (RuleFile | undefined)[] | undefined,
  spoken?: Protocol,
): readonly Rule[] {
  return (rules ?? []).flatMap((rule, index) => {
    const action = rule && readRule(reader, [...path, index], rule, spoken);
    return action ? [{ protocol: rule.protocol, action }] : [];
  });
}

function readRule(
  reader: Reader,
  path: ConfigPath,
  rule: RuleFile,
  spoken: Protocol | undefined,
): RuleAction | undefined {
  if (spoken !== undefined && rule.protocol !== undefined && rule.protocol !== spoken) {
    reader.refuse([...path, "protocol"], `must be ${spoken}, which this upstream speaks; it can be left out`);
  }
  const named = ACTIONS.filter((name) => rule[name] !== undefined);
  // An action that the schema check has refused is already removed and reported.
  if (named.length === 0 && reader.isWhole(path)) {
    reader.complain(path, `a rule needs an action: one of ${ACTIONS.join(", ")}`);
  }
  const [first, second] = named;
  if (second !== undefined) {
    reader.complain([...path, second], `a rule has only one action; put "${second}" into a separate rule`, "key");
  }
  return first && READ[first](reader, [...path, first], rule);
}

const READ: Readonly<
  Record<(typeof ACTIONS)[number], (reader: Reader, path: ConfigPath, rule: RuleFile) => RuleAction | undefined>
> = {
  drop(reader, path, { drop = [] }) {
    const paths = drop.flatMap((text, index) =>
      text === undefined ? [] : [readPath(reader, [...path, index], text, "value", NEVER_TOUCHED)],
    );
    return { kind: "drop", paths };
  },
  set: (reader, path, rule) => ({ kind: "set", members: readAssignments(reader, path, rule.set) }),
  default: (reader, path, rule) => ({ kind: "default", members: readAssignments(reader, path, rule.default) }),
  system(reader, path, { system }) {
    const text = system?.text ?? "";
    if (Buffer.byteLength(text) > LIMITS.systemTextBytesMax) {
      reader.complain([...path, "text"], `must not be longer than ${LIMITS.systemTextBytesMax} bytes`);
    }
    return { kind: "system", text, at: system?.at ?? DEFAULTS.systemTextAt };
  },
  header(reader, path, { header }) {
    const remove = (header?.remove ?? []).flatMap((name) => (name === undefined ? [] : [name.toLowerCase()]));
    for (const [index, name] of remove.entries()) {
      if (OWN.names.has(name)) reader.complain([...path, "remove", index], `"${name}" ${OWN.why}`);
    }
    const add = readHeaderValues(reader, [...path, "add"], header?.add ?? {}, OWN);
    if (!header?.add && !header?.remove && reader.isWhole(path)) {
      reader.complain(path, `a header rule needs "add", "remove" or both`);
    }
    return { kind: "header", edits: { remove, add: [...add].map(([name, value]) => ({ name, value })) } };
  },
  strip_attribution: (_reader, _path, rule) => (rule.strip_attribution ? { kind: "strip_attribution" } : undefined),
};

/**
 * Headers of authentication, content and connection. Rules cannot change them (RFC 9110 7.6.1 for hop-by-hop headers).
 */
const OWN = {
  names: new Set(
    (
      "accept accept-encoding authorization connection content-encoding content-length content-type cookie expect " +
      "host http2-settings keep-alive proxy-authorization proxy-connection te trailer transfer-encoding upgrade x-api-key"
    ).split(" "),
  ),
  why: "is set by Tollgate, so rules cannot change it (an upstream's credential is its `api_key`)",
};

/** Members that rules cannot change, with the reason. */
type Reserved = ReadonlyMap<string, string>;

function reserved(why: string, names: string): [string, string][] {
  return names.split(" ").map((name) => [name, why]);
}

/** Members that have already decided the route and the hold when rules are applied. */
const NEVER_TOUCHED: Reserved = new Map([
  ...reserved("it names the model; use `model` of a route", "model"),
  ...reserved("it is the conversation; use a system rule to add text", "messages input"),
  ...reserved("the client must get the form of answer that it asked for", "stream stream_options"),
  ...reserved(
    "the hold covers the client's output limit; use max_output_tokens or default_output_tokens of the model",
    "max_tokens max_completion_tokens max_output_tokens",
  ),
  ...reserved("the hold covers that many answers", "n"),
  ...reserved("an upstream must not store a client's data (ARCHITECTURE.md promise 14)", "store background"),
  ...reserved(
    "it refers to data that an upstream keeps for all accounts (ARCHITECTURE.md promise 14)",
    "previous_response_id conversation prompt container thread",
  ),
  ...reserved("it has its own price, and admission has already used it", "service_tier speed"),
]);

/** Members that may be dropped but not set, because they would cost extra. */
const NEVER_SET: Reserved = new Map([
  ...NEVER_TOUCHED,
  ...reserved(
    "it switches on something that costs extra and is not part of the hold",
    "tools mcp_servers web_search_options modalities audio prediction inference_geo fallbacks",
  ),
]);

function readPath(reader: Reader, path: ConfigPath, text: string, at: "key" | "value", never: Reserved): MemberPath {
  const parts = text.split(".");
  const why = never.get(parts[0] as string);
  if (why !== undefined) reader.complain(path, `"${text}" cannot be changed by rules: ${why}`, at);
  return parts;
}

/**
 * A thinking budget must be below each request's own limit, and admission may have lowered both (ARCHITECTURE.md
 * promise 1).
 */
const THINKING_BUDGET = /^thinking(?:\.budget_tokens)?$/;

function readAssignments(
  reader: Reader,
  path: ConfigPath,
  members: Readonly<Record<string, unknown>> | undefined,
): Assignment[] {
  return Object.entries(members ?? {}).map(([name, value]) => {
    const at = [...path, name];
    const json = JSON.stringify(value) ?? "null";
    if (THINKING_BUDGET.test(name) && (name !== "thinking" || json.includes('"budget_tokens":'))) {
      reader.complain(at, "rules cannot set a thinking budget: it must be below each request's own limit", "key");
    }
    if (Buffer.byteLength(json) > LIMITS.valueBytesMax) {
      reader.complain(at, `must not be longer than ${LIMITS.valueBytesMax} bytes as JSON`);
    }
    if (!isExact(value))
      reader.complain(at, "has a number that JSON cannot represent exactly (infinite, or beyond 2^53)");
    return { path: readPath(reader, at, name, "key", NEVER_SET), json };
  });
}

/** Whether every number in a value is sent exactly as written. */
function isExact(value: unknown): boolean {
  if (typeof value === "number")
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return typeof value !== "object" || value === null || Object.values(value).every(isExact);
}
