/** Small facts that replies carry beside their content. */

import { objectOf, textOf } from "../../values/json-object.ts";
import { type Citation, type Stop, type StopReason, stopFor } from "../hub.ts";
import { nestsWithin } from "./depth.ts";

/** The last second that is believed to be a time (year 5138). */
const CREATED_S_MAX = 1e11;

/** Seconds since the epoch, or undefined for what cannot be a time. */
export function createdSeconds(value: unknown): number | undefined {
  if (typeof value !== "number" || !(value >= 0) || value > CREATED_S_MAX) return undefined;
  return Math.floor(value);
}

/** A list of token probabilities; empty ones, and what could not be written again, are none. */
export function logprobList(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) && value.length > 0 && nestsWithin(value) ? value : undefined;
}

/**
 * A source in OpenAI's words: chat nests it under `url_citation`, responses does not (docs/translation-rules.md rule
 * 42).
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

/* Why a reply ended, once all of it is known (docs/translation-rules.md rule 43). */

/**
 * The reason that fits the reply's content. A reply with tool calls ends for tools, even if the upstream gave another
 * reason. A stop for tools without a call would stall an agent, so it is a plain end. Truncation and refusals stay what
 * they are.
 * @param calls how many tool calls the client gets to see.
 */
function settleReason(reason: StopReason, calls: number): StopReason {
  if (reason !== "end" && reason !== "tool-calls") return reason;
  return calls > 0 ? "tool-calls" : "end";
}

/** A stop with the reason settled. */
export function settledStop(stop: Stop, calls: number): Stop {
  return { ...stop, reason: settleReason(stop.reason, calls) };
}

/** A refusal that the vendor does not explain. */
export const SILENT_REFUSAL: Stop = Object.freeze({
  ...stopFor("refusal"),
  refusal: Object.freeze({ category: null, explanation: null }),
});
