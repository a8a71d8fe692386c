/** Small values of replies in addition to their content. */

import { objectOf, textOf } from "../../values/json-object.ts";
import { type Citation, type Stop, type StopReason, stopFor } from "../hub-reply.ts";
import { nestsWithin } from "./depth.ts";

/** The latest plausible time (year 5138). */
const CREATED_S_MAX = 1e11;

/** Seconds since the epoch; undefined if the value cannot be a time. */
export function createdSeconds(value: unknown): number | undefined {
  if (typeof value !== "number" || !(value >= 0) || value > CREATED_S_MAX) return undefined;
  return Math.floor(value);
}

/** A list of token probabilities; undefined if it is empty or nests too deep to be written again. */
export function logprobList(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) && value.length > 0 && nestsWithin(value) ? value : undefined;
}

/**
 * A source in the form of OpenAI's protocols: chat nests it under `url_citation`, responses does not
 * (docs/translation-rules.md rule 42).
 * @returns undefined for annotations of other types.
 */
export function urlCitation(value: unknown): Citation | undefined {
  const annotation = objectOf(value);
  if (annotation?.type !== "url_citation") return undefined;
  const source = objectOf(annotation.url_citation) ?? annotation;
  const url = textOf(source.url);
  if (url === undefined) return undefined;
  return {
    url,
    title: textOf(source.title) ?? "",
    startIndex: offset(source.start_index),
    endIndex: offset(source.end_index),
  };
}

function offset(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/* Why a reply ended, decided when all of it is known (docs/translation-rules.md rule 43). */

/**
 * The stop reason that fits the reply's content. A reply with tool calls ends with `tool-calls`, even if the upstream
 * gave another reason. `tool-calls` without a call would block an agent, so it becomes `end`. Truncations and refusals
 * stay what they are.
 * @param calls number of tool calls that the client gets.
 */
function settleReason(reason: StopReason, calls: number): StopReason {
  if (reason !== "end" && reason !== "tool-calls") return reason;
  return calls > 0 ? "tool-calls" : "end";
}

/** A stop with the reason that fits the content. */
export function settledStop(stop: Stop, calls: number): Stop {
  return { ...stop, reason: settleReason(stop.reason, calls) };
}

/** A refusal without the vendor's explanation. */
export const SILENT_REFUSAL: Stop = Object.freeze({
  ...stopFor("refusal"),
  refusal: Object.freeze({ category: null, explanation: null }),
});
