/**
 * What the gateway needs to know about a body to route and bill it, and no more (docs/failure-model.md rows 44 to 51,
 * 56). Members with other names have no effect here: an `api_base` or `api_key` in a body means nothing.
 */

import { type Cause, type Refusal, refusal } from "../values/errors.ts";
import { arrayOf, isGiven, type JsonObject, textOf } from "../values/json-object.ts";
import type { Envelope } from "../values/members/envelope.ts";
import type { StoredNames } from "../values/members/stored.ts";
import { thinkingBudgetOf } from "../values/members/thinking-budget.ts";
import { tierFault, tierOf } from "../values/members/tier.ts";
import { inspectMembers } from "../values/members.ts";
import { type JsonType, PROTOCOLS, type Protocol, type ProtocolFacts } from "../values/protocol.ts";
import { shownValue, wholeNumber } from "../values/words/shown.ts";
import { type JsonFault, type JsonScan, memberValue, type ReadJson, readJson, readJsonInSteps } from "../wire/json.ts";
import { member } from "./envelope/conversation.ts";
import { ConversationFacts } from "./envelope/conversation-facts.ts";
import { refusedName } from "./envelope/names.ts";
import { limitAlias, optionsOf } from "./envelope/purchases.ts";
import { bodyTokens } from "./envelope/text-density.ts";
import { TURNS } from "./turns.ts";

/** A body that has the form that its path requires. */
export interface ReadBody {
  readonly envelope: Envelope;
  readonly json: JsonObject;
  readonly scan: JsonScan;
  readonly body: Uint8Array;
  /** Dotted paths of the unlisted members. An upstream gets them only if its configuration passes them. */
  readonly surplus: readonly string[];
  /** Whether references to items of interrupted replies were removed from the body. */
  readonly lostReferences?: boolean | undefined;
  /** What its wrapped ids name, once they have been opened; undefined if it has none. */
  readonly stored?: StoredNames | undefined;
}

/** More choices than any protocol allows; above this the bill would have no bound. */
export const CHOICES_MAX = 128;

interface EnvelopeOptions {
  /** Whether a limit that the protocol requires may be absent. A request that only counts tokens has no limit. */
  readonly limitOptional?: boolean;
}

/** Larger bodies are read in turns (`turns.ts`). A body of this size takes at most 5 ms. */
const AT_ONCE_BYTES_MAX = 65_536;

/**
 * Reads a body once.
 * @returns a refusal: `not_json`, `duplicate_field`, `body_too_large` (too many tokens), `wrong_protocol`,
 *   `missing_field`, `wrong_type`, `unsupported_parameter`; the last four name the member.
 */
export function readEnvelope(protocol: Protocol, body: Uint8Array, options: EnvelopeOptions = {}): ReadBody | Refusal {
  return envelopeIn(readJson(body), protocol, body, options);
}

/** The same for an untrusted body of any size: it blocks the event loop for at most one turn. */
export async function readEnvelopeInTurns(
  protocol: Protocol,
  body: Uint8Array,
  options: EnvelopeOptions = {},
): Promise<ReadBody | Refusal> {
  if (body.length <= AT_ONCE_BYTES_MAX) return readEnvelope(protocol, body, options);
  await TURNS.next();
  const read = await readJsonInSteps(body, TURNS.pace());
  // A megabyte of small members takes 3 ms more here, and again 3 ms when it is converted. Neither fits into the turn
  // of the last step.
  await TURNS.next();
  const envelope = envelopeIn(read, protocol, body, options);
  await TURNS.next();
  return envelope;
}

function envelopeIn(
  read: ReadJson | JsonFault,
  protocol: Protocol,
  body: Uint8Array,
  { limitOptional = false }: EnvelopeOptions,
): ReadBody | Refusal {
  if ("fault" in read) return refusedScan(read);
  const { scan, json } = read;
  const facts = limitOptional ? withoutLimit(PROTOCOLS[protocol]) : PROTOCOLS[protocol];
  const { fault: misnamed, surplus } = inspectMembers(protocol, body, scan);
  const fault =
    (misnamed && refusedName(misnamed)) ??
    requiredFault(facts, json) ??
    limitFault(facts, json) ??
    optionalFault(facts, json);
  if (fault) return named(fault, json);
  const predictedBytes = memberValue(body, scan, "prediction")?.length ?? 0;
  const envelope = envelopeOf(facts, json, { bodyBytes: body.length, predictedBytes }, scan.tokens);
  return "refused" in envelope ? named(envelope, json) : { envelope, json, scan, body, surplus };
}

/** A fault with the model as typed, by which an operator finds out what the client was meant to use. */
function named(fault: Refusal, { model }: JsonObject): Refusal {
  const isTyped = typeof model === "string" && model !== "";
  return isTyped ? { ...fault, facts: { ...fault.facts, model } } : fault;
}

function withoutLimit(facts: ProtocolFacts): ProtocolFacts {
  return { ...facts, requiredFields: facts.requiredFields.filter(({ name }) => !facts.limitFields.includes(name)) };
}

const SCAN_CAUSES: Readonly<Record<JsonFault["fault"], Cause>> = {
  not_json: "not_json",
  too_deep: "not_json",
  too_long: "not_json",
  too_many_tokens: "body_too_large",
  too_many_members: "not_json",
  duplicate_field: "duplicate_field",
};

function refusedScan(fault: JsonFault): Refusal {
  return refusal(SCAN_CAUSES[fault.fault], { param: fault.name, detail: fault.reason });
}

function requiredFault(facts: ProtocolFacts, json: JsonObject): Refusal | undefined {
  for (const { name } of facts.requiredFields) if (!Object.hasOwn(json, name)) return absentFault(facts, json);
  for (const { name, types } of facts.requiredFields) {
    if (!types.includes(jsonTypeOf(json[name])))
      return wrongType(name, `must be of type ${types.join(" or ")}`, json[name]);
  }
  return json.model === "" ? wrongType("model", "must not be empty", "") : undefined;
}

/** The refusal of a body that lacks a member, or was sent to the path of another protocol. */
function absentFault(facts: ProtocolFacts, json: JsonObject): Refusal | undefined {
  const absent = facts.requiredFields.filter((field) => !Object.hasOwn(json, field.name));
  // A foreign member alone proves nothing, because unknown members may pass. If one of ours is missing as well, it
  // does.
  if (absent.some((field) => field.name !== "model")) {
    const foreign = facts.foreignFields.find((field) => Object.hasOwn(json, field.name));
    if (foreign) {
      const detail = `"${foreign.name}" belongs to ${PROTOCOLS[foreign.protocol].path}.`;
      return refusal("wrong_protocol", { param: foreign.name, detail });
    }
  }
  const [first] = absent;
  return first && refusal("missing_field", { param: first.name, detail: `"${first.name}" is required.` });
}

/** Every output limit must be billable: an integer, finite, and not below the protocol's minimum. */
function limitFault(facts: ProtocolFacts, json: JsonObject): Refusal | undefined {
  for (const name of facts.limitFields) {
    const value = json[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < facts.limitMin) {
      return wrongType(name, `must be ${wholeNumber(facts.limitMin, value)}`, value);
    }
  }
  return undefined;
}

/**
 * Members that are judged by their contents. A server might also accept a list, as PHP writes an empty object as `[]`.
 */
const OBJECTS = ["reasoning", "thinking", "chat_template_kwargs", "prompt_cache_options", "tool_choice"] as const;

function optionalFault(facts: ProtocolFacts, json: JsonObject): Refusal | undefined {
  if (isGiven(json.stream) && typeof json.stream !== "boolean")
    return wrongType("stream", "must be true or false", json.stream);
  const tierless = tierFault(json);
  if (tierless) return wrongType(tierless.param, tierless.demand, tierless.value);
  const list = OBJECTS.find((name) => arrayOf(json[name]).length > 0);
  if (list !== undefined) return wrongType(list, "must be an object", json[list]);
  const alias = limitAlias(facts, json);
  if (alias) return alias;
  if (facts.name !== "chat" || !isGiven(json.n)) return undefined;
  const n = json.n;
  const countable = typeof n === "number" && Number.isInteger(n) && n >= 1 && n <= CHOICES_MAX;
  return countable ? undefined : wrongType("n", `must be a whole number from 1 to ${CHOICES_MAX}`, n);
}

/** If two limits are given, an upstream may honor either, so the hold uses the larger one. */
function largestLimit(facts: ProtocolFacts, json: JsonObject): Envelope["limit"] {
  let largest: Envelope["limit"];
  for (const field of facts.limitFields) {
    const value = json[field];
    if (typeof value === "number" && (largest === undefined || value > largest.value)) largest = { field, value };
  }
  return largest;
}

function envelopeOf(
  facts: ProtocolFacts,
  json: JsonObject,
  { bodyBytes, predictedBytes }: Pick<Envelope, "bodyBytes" | "predictedBytes">,
  jsonTokens: number,
): Envelope | Refusal {
  const { media, tools, refused } = new ConversationFacts(facts.name, json);
  if (refused) return refused;
  const chat = facts.name === "chat";
  const tier = tierOf(json);
  const budget = facts.name === "messages" ? undefined : thinkingBudgetOf(json);
  const textBytes = bodyBytes - media.base64Bytes;
  return {
    protocol: facts.name,
    model: json.model as string,
    stream: json.stream === true,
    limit: largestLimit(facts, json),
    thinkingBudget: budget?.tokens ?? 0,
    budgetParam: budget?.param,
    predictedBytes: chat && isGiven(json.prediction) ? predictedBytes : 0,
    choices: chat && typeof json.n === "number" ? json.n : 1,
    bodyBytes,
    textBytes,
    textTokens: bodyTokens(json, { textBytes, jsonTokens }, media.places),
    media: media.pieces,
    compacts: asksForCompaction(json),
    serviceTier: tier?.name,
    tierParam: tier?.param,
    hostedTools: [...tools.types],
    demandedTools: [...tools.demanded],
    hasOwnTools: tools.hasOwn,
    formBytes: tools.formBytes,
    options: optionsOf(facts.name, json),
    includeUsage: chat && asksForUsage(json.stream_options),
    keepsReply: facts.name === "responses" && json.store !== false,
  };
}

/** Clearing old results and thinking costs nothing; every other edit counts as a compaction. */
function asksForCompaction({ context_management: managed }: JsonObject): boolean {
  const edits = Array.isArray(managed) ? managed : member(managed, "edits");
  return Array.isArray(edits) && edits.some((edit) => !textOf(member(edit, "type"))?.startsWith("clear_"));
}

function asksForUsage(options: unknown): boolean {
  return typeof options === "object" && options !== null && (options as JsonObject).include_usage === true;
}

function jsonTypeOf(value: unknown): JsonType {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as JsonType);
}

function wrongType(name: string, demand: string, value: unknown): Refusal {
  return refusal("wrong_type", { param: name, detail: `"${name}" ${demand}; it is ${shownValue(value)}.` });
}
