/** The questions that `explain` answers: a key's owner sends a body; an operator gives a key, a model and sizes. */
import { type ReadBody, readEnvelope, readEnvelopeInTurns } from "../../accept/envelope.ts";
import type { AcceptedRequest } from "../../accept/listener.ts";
import { TURNS } from "../../accept/turns.ts";
import type { ExplainAsk, ExplanationAnswer, OwnExplanationAnswer } from "../../console/routes/explain.ts";
import { withReferences } from "../../request/references.ts";
import type { Store } from "../../store/contract.ts";
import { effectiveKeyStatus } from "../../store/decision.ts";
import { keyScope, limitScope } from "../../store/names.ts";
import type { Key, KeyView } from "../../store/records.ts";
import { isRefusal, type Refusal, refusal } from "../../values/errors.ts";
import { tagOfId } from "../../values/key.ts";
import { ZERO } from "../../values/money.ts";
import { PROTOCOL_NAMES, PROTOCOLS, type Protocol } from "../../values/protocol.ts";
import type { Settings } from "../../values/settings.ts";
import { isJsonFault, scanJsonInSteps } from "../../wire/json.ts";
import { type ExplainParts, type ExplainQuestion, explain, type Forecast, type SeenAccount } from "./explain.ts";
import { explainedToOperator, explainedToOwner } from "./explanation.ts";

/** Only reads of the store. */
type ExplainStore = Pick<Store, "getAccount" | "listKeys" | "listCards" | "readLimits" | "readAccountBudgets">;

/**
 * `POST /v1/explain` for the owner of a key.
 * @param body a request body, its protocol in the query (`?protocol=chat`) or guessed; or `{"protocol", "request"}`.
 * @returns a refusal for an unknown protocol.
 * @throws StoreError
 */
export async function explainOwn(
  view: KeyView,
  { headers, query }: Pick<AcceptedRequest, "headers" | "query">,
  body: Uint8Array,
  parts: ExplainParts & { readonly accounts: Pick<Store, "getAccount" | "readLimits"> },
): Promise<object | Refusal> {
  const asked = new URLSearchParams(query).get("protocol");
  const shown = await shownRequest(body, asked, headers.has("anthropic-version"));
  if (isRefusal(shown)) return shown;
  // Admission waits for the account's own last charge before it refuses for lack of funds, and so does this.
  await parts.admit.unsettled(view.key.tag);
  const [account, limits] = await Promise.all([
    parts.accounts.getAccount(view.key.tag),
    limitsOf(view.key, parts.accounts, parts.settings()),
  ]);
  const read = await readEnvelopeInTurns(shown.protocol, shown.body);
  const question: ExplainQuestion = {
    protocol: shown.protocol,
    read: isRefusal(read) ? read : await withReferences(read, view.key.tag, readEnvelopeInTurns, parts),
    strict: headers.get("x-tollgate-strict") === "1",
  };
  // The balance at the same instant as its holds; the key's view is slightly older.
  const seen = account
    ? { view: { ...view, account }, held: account.held, ...limits }
    : { view, held: ZERO, ...limits };
  return explainedToOwner(await explain(question, seen, parts), parts.settings().upstreamUnavailableStatus);
}

interface Shown {
  readonly protocol: Protocol;
  readonly body: Uint8Array;
}

/** The bytes of the given request, and its protocol: from the query, from the envelope, or guessed. */
async function shownRequest(body: Uint8Array, named: string | null, anthropic: boolean): Promise<Shown | Refusal> {
  if (named !== null) return isProtocol(named) ? { protocol: named, body } : notAProtocol();
  await TURNS.next();
  const scan = await scanJsonInSteps(body, TURNS.pace());
  if (isJsonFault(scan)) return { protocol: anthropic ? "messages" : "chat", body };
  const at = new Map(scan.members.map((member) => [member.name, member]));
  const [protocol, request] = [at.get("protocol"), at.get("request")];
  if (!protocol || !request || at.has("model")) {
    return { protocol: guessed(new Set(at.keys()), anthropic), body };
  }
  const raw = body.subarray(protocol.valueStart, Math.min(protocol.valueEnd, protocol.valueStart + RAW_NAME_BYTES_MAX));
  const name = parsedName(Buffer.from(raw).toString());
  if (typeof name !== "string" || !isProtocol(name)) return notAProtocol();
  return { protocol: name, body: body.subarray(request.valueStart, request.valueEnd) };
}

/** Longer than any protocol's name, however it is escaped. */
const RAW_NAME_BYTES_MAX = 256;

/** A name that was cut off does not parse. */
function parsedName(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}

const MESSAGES_MEMBERS = ["system", "stop_sequences", "thinking", "anthropic_version"];

function guessed(members: ReadonlySet<string>, anthropic: boolean): Protocol {
  if (["input", "instructions", "max_output_tokens"].some((name) => members.has(name))) return "responses";
  return anthropic || MESSAGES_MEMBERS.some((name) => members.has(name)) ? "messages" : "chat";
}

function isProtocol(text: string): text is Protocol {
  return (PROTOCOL_NAMES as readonly string[]).includes(text);
}

function notAProtocol(): Refusal {
  return refusal("wrong_type", {
    param: "protocol",
    detail: `"protocol" must be one of ${PROTOCOL_NAMES.join(", ")}.`,
  });
}

/**
 * `tollgate explain`: for the operator, about any key.
 * @returns undefined if the key does not exist.
 * @throws StoreError
 */
export async function explainFor(
  ask: ExplainAsk,
  store: ExplainStore,
  parts: ExplainParts,
): Promise<ExplanationAnswer | undefined> {
  const forecast = await forecastFor(ask, store, parts);
  return forecast && explainedToOperator(forecast, parts.settings().upstreamUnavailableStatus);
}

/**
 * The same for the owner of the key, in the console, without what concerns only the operator.
 * @param store as the owner sees it.
 * @throws StoreError
 */
export async function explainToOwner(
  ask: ExplainAsk,
  store: ExplainStore,
  parts: ExplainParts,
): Promise<OwnExplanationAnswer | undefined> {
  const forecast = await forecastFor(ask, store, parts);
  return forecast && explainedToOwner(forecast, parts.settings().upstreamUnavailableStatus);
}

async function forecastFor(ask: ExplainAsk, store: ExplainStore, parts: ExplainParts): Promise<Forecast | undefined> {
  const settings = parts.settings();
  const seen = await seenOf(ask.keyId, store, settings);
  if (!seen) return undefined;
  return explain({ protocol: ask.protocol, read: imagined(ask, settings), strict: false }, seen, parts);
}

/** How much of the limits that apply to this key, its group's and its own, is used. */
async function limitsOf(
  { tag, id, group, limits, caps }: Key,
  store: Pick<Store, "readLimits">,
  { catalog }: Settings,
) {
  const perKey = catalog.groups.get(group)?.limits.perKey ?? false;
  const hasOwn = limits !== "" || caps !== "";
  const [ofGroup, limitsOfKey] = await Promise.all([
    store.readLimits(tag, limitScope(group, id, perKey)),
    hasOwn ? store.readLimits(tag, keyScope(id)) : undefined,
  ]);
  return { limits: ofGroup, limitsOfKey };
}

async function seenOf(keyId: string, store: ExplainStore, settings: Settings): Promise<SeenAccount | undefined> {
  const tag = tagOfId(keyId);
  if (tag === undefined) return undefined;
  const [account, keys, cards, ofAccount = []] = await Promise.all([
    store.getAccount(tag),
    store.listKeys(tag),
    store.listCards(tag),
    store.readAccountBudgets(tag),
  ]);
  const own = keys.find(({ id }) => id === keyId);
  if (!account || !own || !cards) return undefined;
  const key = { ...own, status: effectiveKeyStatus(own.status, account.status) };
  const { held } = account;
  const limits = await limitsOf(key, store, settings);
  const budgets = new Map([...key.budgets, ...ofAccount]);
  return {
    view: { key, account, entitlements: cards.cards, budgets, storeTimeMs: cards.storeTimeMs },
    held,
    ...limits,
  };
}

/** A small body of the protocol that claims to have the given number of bytes. */
function imagined({ protocol, model, maxTokens, inputBytes }: ExplainAsk, settings: Settings): ReadBody | Refusal {
  const { bodyBytesMax, catalog } = settings;
  if (inputBytes !== undefined && inputBytes > bodyBytesMax) {
    return refusal("body_too_large", { detail: `At most ${bodyBytesMax} bytes are accepted.` });
  }
  const { limitFields, requiredFields } = PROTOCOLS[protocol];
  const field = limitFields[0] as string;
  // If the protocol requires a limit, the model's default is used.
  const needed = requiredFields.some(({ name }) => name === field);
  const limit = maxTokens ?? (needed ? (catalog.models.get(model)?.defaultOutputTokens ?? 1) : undefined);
  const text = "Hello";
  const turn = protocol === "responses" ? { input: text } : { messages: [{ role: "user", content: text }] };
  const read = readEnvelope(protocol, Buffer.from(JSON.stringify({ model, [field]: limit, ...turn })));
  if (isRefusal(read) || inputBytes === undefined) return read;
  return { ...read, envelope: { ...read.envelope, textBytes: inputBytes } };
}
