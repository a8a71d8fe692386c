/** The time, random numbers and secrets for conversion. */
import { randomBytes } from "node:crypto";
import type { Permit } from "../admit/permit.ts";
import type { ConvertContext } from "../convert/exchange.ts";
import { pooled, randomBase62 } from "../values/key.ts";
import type { PipelineParts } from "./run.ts";

/** For ids in replies, which are not secret. */
const RANDOM = pooled(randomBytes);

/**
 * After this many envelopes of a request could not be opened, at 5 us per envelope and key, its other envelopes count
 * as foreign without a try. In an old conversation none may open, because its key was removed; and anybody can send
 * sixty thousand invalid ones at no cost.
 */
const FOREIGN_MAX = 1_000;

/** Envelopes are bound to the account: an envelope of another tenant does not open (ARCHITECTURE.md promise 14). */
export function contextOf(
  { clock, sealing }: Pick<PipelineParts, "clock" | "sealing">,
  { tag }: Pick<Permit, "tag">,
): ConvertContext {
  let foreign = 0;
  return {
    nowS: Math.floor(clock.wallMs() / 1_000),
    randomId: (length) => randomBase62(length, RANDOM),
    sealAlike: (content, context) => sealing.sealAlike(content, `${tag}:${context}`),
    seal: (content, context) => sealing.seal(content, `${tag}:${context}`),
    digest: (text) => sealing.digest(`${tag}:${text}`),
    open(envelope, context) {
      const opened = foreign < FOREIGN_MAX ? sealing.open(envelope, `${tag}:${context}`) : undefined;
      if (opened === undefined) foreign++;
      return opened;
    },
  };
}
