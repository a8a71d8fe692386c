/** What conversion is given of time, chance and secrets. */
import { randomBytes } from "node:crypto";
import type { Permit } from "../admit/permit.ts";
import type { ConvertContext } from "../convert/exchange.ts";
import { pooled, randomBase62 } from "../values/key.ts";
import type { PipelineParts } from "./run.ts";

/** For ids in replies, which are no secrets. */
const RANDOM = pooled(randomBytes);

/**
 * So many envelopes of a request that do not open are tried, 5 us each and key; the others of it, then, are taken for such at once. A whole
 * conversation's do not open where its key is gone; a stranger can write sixty thousand for nothing.
 */
const FOREIGN_MAX = 1_000;

/** Envelopes are bound to the account: one that another tenant brings is a stranger's (ARCHITECTURE.md promise 14). */
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
