/**
 * From what an upstream counted, or what was seen going by, to the tokens that are billed (promise 3).
 */
import { billedUsage, type Usage } from "../values/tokens.ts";

/** What is known when a request ends. */
export interface Measured {
  /** The upstream's believable count, if it gave one; in a cut stream perhaps a snapshot from its beginning. */
  readonly usage: Usage | undefined;
  /** Whether that count is the upstream's last word. */
  readonly final: boolean;
  /** UTF-8 bytes of text, reasoning and tool arguments that were produced. */
  readonly producedBytes: number;
  /** The model that the upstream says has answered, where that is another than was asked for. */
  readonly answeredBy?: string | undefined;
  /** Input tokens at 4 bytes each. */
  readonly inputEstimate: number;
}

export interface Metered {
  readonly usage: Usage;
  /** Who counted; the ledger line says so. */
  readonly counted: "upstream" | "estimate";
}

/**
 * The upstream's count where there is a final one, else what was produced at 4 bytes a token. A snapshot keeps its input
 * side, which is final from the start, and its output where that is more than the estimate. A count that lacks a side is
 * an estimate, too.
 */
export function meter(measured: Measured): Metered {
  const { usage, estimated } = billedUsage(measured.usage, measured);
  return { usage, counted: estimated ? "estimate" : "upstream" };
}
