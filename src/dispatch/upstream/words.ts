/**
 * What an upstream says in the body of a refusal, made safe to repeat. Its wording of a 400 is kept because clients
 * match on it ("prompt is too long"); what could reveal whose account it is, or where the upstream is, is taken out
 * (docs/translation-rules.md rule 47; docs/failure-model.md row 60).
 */

import { quoted } from "../../values/errors.ts";
import { isObject } from "../../values/json-object.ts";
import type { UpstreamSettings } from "../../values/settings.ts";

interface UpstreamWords {
  /** For the client, cleaned; undefined when the upstream said nothing that can be read. */
  readonly message: string | undefined;
  /** Whether this is about a model name that the upstream does not know. */
  readonly modelUnknown: boolean;
}

const MESSAGE_LENGTH_MAX = 2_000;

const REMOVED = "[removed]";

/** Shorter configured values are words like `true`, which would take holes into ordinary text. */
const SECRET_LENGTH_MIN = 6;

/** Account, organisation, project and request ids; keys; bearer values; addresses. */
const IDENTIFYING: readonly RegExp[] = [
  /\bbearer\s+[^\s"',;]+/gi,
  /\bsk-[\w-]{6,}/g,
  /\b(?:org|organization|req|request|acct|account|proj|project|user|team|workspace|wrkspc|cf-ray)[-_][\w-]{4,}/gi,
  /\b[a-z][a-z0-9+.-]{1,15}:\/\/[^\s"'<>)]+/gi,
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g,
];

const NO_WORDS: UpstreamWords = { message: undefined, modelUnknown: false };

/**
 * @param body the refusal's body, at most some tens of KiB; need not be JSON.
 */
export function readUpstreamWords(body: Uint8Array, settings: UpstreamSettings): UpstreamWords {
  const said = readJson(body);
  if (said === undefined) return NO_WORDS;
  const error = isObject(said.error) ? said.error : said;
  const text = messageOf(said, error);
  return {
    message: text === undefined ? undefined : cleaned(text, settings),
    modelUnknown: saysModelUnknown(error, text ?? ""),
  };
}

function readJson(body: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** `error.message` (all three protocols), `error` or `message` as text, `detail` as text or as a list of findings. */
function messageOf(said: Record<string, unknown>, error: Record<string, unknown>): string | undefined {
  const found = [error.message, said.error, said.message, said.detail, firstFinding(said.detail)];
  return found.find((text): text is string => typeof text === "string" && text.trim() !== "");
}

function firstFinding(detail: unknown): unknown {
  const first: unknown = Array.isArray(detail) ? detail[0] : undefined;
  return isObject(first) ? first.msg : undefined;
}

/** Only a message that begins with the model is about it: a prompt that is quoted back may say anything. */
function saysModelUnknown(error: Record<string, unknown>, text: string): boolean {
  if (error.code === "model_not_found" || error.type === "model_not_found") return true;
  return /^(?:the )?(?:requested )?model\b.{0,160}\b(?:does not exist|not found|could not be found)/is.test(text);
}

function cleaned(text: string, settings: UpstreamSettings): string | undefined {
  // Longer text is cut before it is searched, with a margin so that a secret on the border is still found whole.
  let rest = text.slice(0, 2 * MESSAGE_LENGTH_MAX);
  for (const secret of secretsOf(settings)) rest = withoutEach(rest, secret);
  for (const pattern of IDENTIFYING) rest = rest.replace(pattern, REMOVED);
  const safe = quoted(rest.trim(), MESSAGE_LENGTH_MAX - 1);
  const short = safe.length > MESSAGE_LENGTH_MAX ? `${safe.slice(0, MESSAGE_LENGTH_MAX - 1)}…` : safe;
  return short.replaceAll(REMOVED, "").trim() === "" ? undefined : short;
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

/** Without regard to case, since hosts have none. */
function withoutEach(text: string, secret: string): string {
  return text.replace(new RegExp(secret.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), "gi"), REMOVED);
}
