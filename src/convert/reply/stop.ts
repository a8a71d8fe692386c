/** Why a reply ended, once all of it is known (docs/translation-rules.md rule 43). */
import { type Stop, type StopReason, stopFor } from "../hub.ts";

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
