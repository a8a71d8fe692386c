/**
 * The upstream's message in the body of a refusal, made safe to repeat. Its wording of a 400 is kept, because clients
 * match on it ("prompt is too long"). What could reveal the account or the address of the upstream is removed
 * (docs/translation-rules.md rule 47; docs/failure-model.md row 60).
 */

import { isObject, type JsonObject } from "../../values/json-object.ts";
import type { UpstreamSettings } from "../../values/settings.ts";
import {
  codeIn,
  isOfOperator,
  type RefusalMeaning,
  refusalMeaning,
  refusesReasoning,
  type UpstreamErrorNames,
} from "../../values/upstream-refusals.ts";
import { resemblesCredential } from "../../values/words/credential.ts";
import { quoted } from "../../values/words/shown.ts";

interface UpstreamWords {
  /** For the client, cleaned; undefined if the upstream gave no readable message. */
  readonly message: string | undefined;
  /** Whether this is about a model name that the upstream does not know. */
  readonly modelUnknown: boolean;
  /** Whether it is about an item that the client refers to and the upstream does not keep. */
  readonly itemUnknown: boolean;
  /** Whether it is about reasoning from another account, conversation or server. */
  readonly reasoningRefused: boolean;
  /** Why it refused the request, if a code or a sentence shows it. */
  readonly meaning: RefusalMeaning | undefined;
  /** The members that programs read, not yet cleaned. */
  readonly names: UpstreamErrorNames;
  /** What a 400 says is wrong with TLS between the gateway and the upstream, for the operator. */
  readonly tlsFault: string | undefined;
}

const MESSAGE_LENGTH_MAX = 2_000;
/** Maximum of characters that are searched for text to remove. */
const SEARCHED_LENGTH_MAX = 2 * MESSAGE_LENGTH_MAX;
/** Longer than any name of an account, an address or a key. */
const IDENTIFYING_LENGTH_MAX = 500;

const REMOVED = "[removed]";

/** Shorter configured values are words like `true`, whose removal would damage ordinary text. */
const SECRET_LENGTH_MIN = 6;

/** Account, organization, project and request ids; keys; values of credentials; addresses. */
const IDENTIFYING: readonly RegExp[] = [
  /\bbearer\s+[^\s"',;]+/gi,
  /\bauthorization:\s*basic\s+[^\s"',;]+/gi,
  /\b(?:x-)?api[-_ ]?key\s*[:=]\s*[^\s"',;]{8,}/gi,
  // Google's keys and projects, Amazon's names.
  /\bAIza[\w-]{20,}/g,
  /\bprojects\/[^\s"'`,;()]+/g,
  /\barn:aws[\w-]*:[^\s"'`,;()]+/gi,
  /\bsk-[\w-]{6,}/g,
  /\b(?:org|organization|req|request|acct|account|proj|project|user|team|workspace|wrkspc|cf-ray)[-_][\w-]{4,}/gi,
  // Anthropic's ids of organizations.
  /(?<=\b(?:organi[sz]ation|account|workspace|project|team)(?:'s)?(?: id)?[ :='"`(]{1,3})[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi,
  /\b[a-z][a-z0-9+.-]{1,15}:\/\/[^\s"'<>)]+/gi,
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g,
  // IPv6, in full or with `::` and a digit; hosts with a port.
  /(?<![\w:])(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?=[0-9a-f:]*\d)(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6})(?![\w:])/gi,
  /\b(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}:\d{2,5}\b/gi,
];

const NO_WORDS: UpstreamWords = {
  message: undefined,
  modelUnknown: false,
  itemUnknown: false,
  reasoningRefused: false,
  meaning: undefined,
  names: {},
  tlsFault: undefined,
};

const EXPECTS_TLS = "it expects TLS at this port";

/**
 * The pages of nginx, Go and Apache about how the gateway connects: nginx accepts any client certificate in the
 * handshake, and refuses it in an answer. They are matched with their markup, because a page that quotes a request
 * escapes that.
 */
const TLS_PAGES: readonly (readonly [RegExp, string])[] = [
  [/<center>No required SSL certificate was sent<\/center>/, "it demands a client certificate"],
  [/<center>The SSL certificate error<\/center>/, "it refuses the client certificate"],
  [/<center>The plain HTTP request was sent to HTTPS port<\/center>/, EXPECTS_TLS],
  [/^Client sent an HTTP request to an HTTPS server\.\n?$/, EXPECTS_TLS],
  [/^Reason: You're speaking plain HTTP to an SSL-enabled server port\.<br \/>$/m, EXPECTS_TLS],
];

/** @param body the refusal's body, at most some tens of KiB; need not be JSON. */
export function readUpstreamWords(body: Uint8Array, settings: UpstreamSettings): UpstreamWords {
  const whole = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
  const outer = readJson(whole);
  if (outer === undefined) {
    const tlsFault = TLS_PAGES.find(([page]) => page.test(whole))?.[1];
    return tlsFault === undefined ? NO_WORDS : { ...NO_WORDS, tlsFault };
  }
  const answer = providersOwn(outer) ?? outer;
  const error = isObject(answer.error) ? answer.error : answer;
  const finding = findingIn(answer, error);
  const text = messageOf(answer, error) ?? finding?.text;
  const place = text === finding?.text ? finding?.place : undefined;
  const isOfBody = text === finding?.text && finding?.isOfBody === true;
  const placed = place === undefined ? text : `${place.join(".")}: ${text}`;
  const meaning = refusalMeaning([codeIn(error), error.type, error.status], text);
  return {
    message: placed === undefined ? undefined : cleanedWords(placed, settings),
    modelUnknown: saysModelUnknown(error, text ?? ""),
    itemUnknown: ITEM_UNKNOWN.test(text ?? ""),
    reasoningRefused: refusesReasoning([error.code, error.type], text),
    // What is wrong with a member of the request says nothing about the operator's account.
    meaning: isOfBody && isOfOperator(meaning) ? undefined : meaning,
    names: error.param == null && finding?.place ? { code: error.code, param: paramOf(finding.place) } : error,
    tlsFault: undefined,
  };
}

/** An object, or the first of a list of objects: Gemini's OpenAI format wraps its errors in a list. */
function readJson(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const first: unknown = Array.isArray(value) ? value[0] : value;
    return isObject(first) ? first : undefined;
  } catch {
    return undefined;
  }
}

/** The error of the server behind a router, which the router passes on as text (OpenRouter's `metadata.raw`). */
function providersOwn(answer: Record<string, unknown>): Record<string, unknown> | undefined {
  const error = isObject(answer.error) ? answer.error : undefined;
  const raw = isObject(error?.metadata) ? error.metadata.raw : undefined;
  const own = typeof raw === "string" ? readJson(raw) : undefined;
  return own && messageOf(own, isObject(own.error) ? own.error : own) !== undefined ? own : undefined;
}

/** `error.message` (all three protocols), `error` or `message` as text, `detail` as text. */
function messageOf(answer: Record<string, unknown>, error: Record<string, unknown>): string | undefined {
  return [error.message, answer.error, answer.message, answer.detail].find(isText);
}

function isText(text: unknown): text is string {
  return typeof text === "string" && text.trim() !== "";
}

/** What a server in Python finds wrong about a body: `{"loc": ["body", "messages", 0, "name"], "msg": "..."}`. */
interface BodyFinding {
  readonly text: string;
  /** Whether it is about the body, and not about a header with the operator's key. */
  readonly isOfBody: boolean;
  /** Names and indexes; undefined if there are none. */
  readonly place: readonly (string | number)[] | undefined;
}

/** The first finding of `detail` (FastAPI), of `message`, or of `message.detail` (Mistral). */
function findingIn(answer: Record<string, unknown>, error: Record<string, unknown>): BodyFinding | undefined {
  const inMessage = isObject(error.message) ? error.message.detail : error.message;
  const list = [answer.detail, inMessage].find(Array.isArray);
  const first: unknown = list?.[0];
  if (!isObject(first) || !isText(first.msg)) return undefined;
  const loc: unknown[] = Array.isArray(first.loc) ? first.loc : [];
  const place = (loc[0] === "body" ? loc.slice(1) : loc).filter((one) => typeof one === "string" || isIndex(one));
  return {
    text: first.msg,
    isOfBody: loc[0] === "body",
    place: place.length === 0 ? undefined : (place as (string | number)[]),
  };
}

const isIndex = (value: unknown): value is number => typeof value === "number" && Number.isInteger(value);

/** `messages[0].name`, as OpenAI's servers write it. */
function paramOf(place: readonly (string | number)[]): string {
  return place.map((one, at) => (typeof one === "number" ? `[${one}]` : at === 0 ? one : `.${one}`)).join("");
}

/** OpenAI's and Azure's sentence, also with a 404. */
const ITEM_UNKNOWN = /^item with id '[^']{1,200}' not found/i;

/**
 * Only a message that begins with the model, and quotes at most one name, is about it: quoted text may say anything.
 */
function saysModelUnknown(error: Record<string, unknown>, text: string): boolean {
  if (error.code === "model_not_found" || error.type === "model_not_found") return true;
  return MODEL_UNKNOWN.test(text);
}

const MODEL_UNKNOWN =
  /^(?:the )?(?:requested )?model\b[^"'`]{0,160}(?:(["'`])[^"'`\s]{1,160}\1[^"'`]{0,80})?\b(?:does not exist|not found|could not be found)/i;

/** An upstream's text without what could reveal its account or address; undefined if nothing is left. */
export function cleanedWords(text: string, settings: UpstreamSettings): string | undefined {
  // Longer text is cut before the search, and the cut may split a secret so that it is not found. So the end of the
  // text, which could be part of a secret, is not shown, however short the rest has become.
  let rest = text.slice(0, SEARCHED_LENGTH_MAX);
  const secrets = secretsOf(settings);
  for (const secret of secrets) rest = withoutEach(rest, secret);
  for (const pattern of IDENTIFYING) rest = rest.replace(pattern, REMOVED);
  if (text.length > SEARCHED_LENGTH_MAX)
    rest = rest.slice(0, -Math.max(IDENTIFYING_LENGTH_MAX, secrets[0]?.length ?? 0));
  const safe = quoted(rest.trim(), MESSAGE_LENGTH_MAX - 1);
  const short = safe.length > MESSAGE_LENGTH_MAX ? `${safe.slice(0, MESSAGE_LENGTH_MAX - 1)}…` : safe;
  return short.replaceAll(REMOVED, "").trim() === "" ? undefined : short;
}

/** Words, as in `string_above_max_length`; a code of digits only is a status or a number of the vendor's. */
const CODE = /^[A-Za-z][\w.-]{0,63}$/;

/** Members and indexes, as in `messages[0].content[1].image_url`. */
const PARAM = /^[A-Za-z_](?:[\w.-]|\[\d{0,6}\]){0,127}$/;

/** Codes of which clients conclude something that is not true of this gateway or its key, or that are retried. */
const MISLEADING: ReadonlySet<string> = new Set([
  ...["insufficient_quota", "model_not_found"],
  ...["rate_limit_exceeded", "server_error", "server_is_overloaded"],
]);

/** The code of a rejection; undefined if it has not the form of one or could reveal what a message must not. */
export function cleanedCode({ code }: UpstreamErrorNames, by: NamedUpstream): string | undefined {
  const name = cleanedName(code, CODE, by);
  return name === undefined || MISLEADING.has(name) ? undefined : name;
}

/** The same for the parameter that a rejection blames. */
export function cleanedParam({ param }: UpstreamErrorNames, by: NamedUpstream): string | undefined {
  return cleanedName(param, PARAM, by);
}

/** The most members of details, and elements of a list in them, that are shown. */
const DETAILS_MAX = 100;

/**
 * Members whose values name the operator's account, whatever their form: `account`, `account_id`, `accountId`,
 * `aws_account`. A user in the middle of a name can be the role of a message.
 */
const ACCOUNT_MEMBER =
  /(?:^user|(?:^|[-_.])(?:org|organi[sz]ation|workspace|account|project|team|tenant|subscription))s?(?:[-_.]|$)/i;
const CAPITAL = /(?<=[a-z\d])(?=[A-Z])/g;

/**
 * The details of a rejection: Anthropic's SDK chooses the class of its error by their `error_code` and gives their
 * other members to the program. Numbers, and texts and lists of texts with the form of a parameter, are kept, but no
 * names and ids of the operator's account: Anthropic's ids of organizations are UUIDs.
 */
export function cleanedDetails({ details }: UpstreamErrorNames, by: NamedUpstream): JsonObject | undefined {
  if (!isObject(details)) return undefined;
  const code = cleanedCode({ code: details.error_code }, by);
  if (code === undefined) return undefined;
  const isShown = (value: unknown) => {
    if (Number.isFinite(value)) return true;
    const text = cleanedName(value, PARAM, by);
    return text !== undefined && !resemblesCredential(text);
  };
  const more = Object.entries(details)
    .slice(0, DETAILS_MAX)
    .filter(([, value]) =>
      Array.isArray(value) ? value.length <= DETAILS_MAX && value.every(isShown) : isShown(value),
    )
    .filter(([name]) => cleanedName(name, CODE, by) !== undefined && !ACCOUNT_MEMBER.test(name.replace(CAPITAL, "_")));
  return { ...Object.fromEntries(more), error_code: code };
}

/** An upstream and its own name of the model, which the client may know by another. */
export interface NamedUpstream {
  readonly settings: UpstreamSettings;
  readonly model: string;
}

/** Programs compare these texts, so one of which a part would have to be removed is left out. */
function cleanedName(value: unknown, form: RegExp, { settings, model }: NamedUpstream): string | undefined {
  if (typeof value !== "string" || value.length > NAME_LENGTH_MAX || !form.test(value)) return undefined;
  return cleanedWords(value, settings) === value && !holdsName(value, model) ? value : undefined;
}

const NAME_LENGTH_MAX = 128;

/** A name without a digit may be an ordinary word, so only a whole part of the text counts as it. */
function holdsName(text: string, name: string): boolean {
  const [inText, wanted] = [text.toLowerCase(), name.toLowerCase()];
  return /\d/.test(name) ? inText.includes(wanted) : inText.split(/[.[\]]/).includes(wanted);
}

function secretsOf(settings: UpstreamSettings): string[] {
  const base = new URL(settings.baseUrl);
  return [
    settings.apiKey?.reveal() ?? "",
    ...[...settings.headers.values()].map((value) => value.reveal()),
    settings.baseUrl,
    base.host,
    base.hostname,
  ]
    .filter((secret) => secret.length >= SECRET_LENGTH_MIN)
    .sort((left, right) => right.length - left.length);
}

/** Ignores case, because host names do. */
function withoutEach(text: string, secret: string): string {
  return text.replace(new RegExp(secret.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), "gi"), REMOVED);
}
