/**
 * What is known of a model that writes out of sight, and what becomes of its upstream when the client leaves
 * (docs/decisions/what-leaving-costs.md).
 */
import type { Permit } from "./admit/permit.ts";
import type { Leaving } from "./read-on.ts";
import type { PipelineParts, Run } from "./run.ts";
import { costSoFar } from "./settle/charge.ts";
import type { Measured } from "./settle/meter.ts";
import { doubtedTokens, type Pace } from "./settle/observed.ts";
import type { SeenCounts } from "./silence.ts";
import type { Route } from "./values/catalog.ts";

/** How the model writes that answers, as far as is known now. */
export function paceOf(run: Run, route: Route, { observed }: Pick<PipelineParts, "observed">): Pace {
  return observed.paceOf(route, run.asksToThink || route.capabilities.thinking !== "none");
}

/** A reply with its upstream's last count says how its model writes. */
export function learn(
  route: Route,
  { usage, final, produced, silentMs }: Measured,
  { observed }: Pick<PipelineParts, "observed">,
): void {
  if (usage && final) observed.note(route, { usage, produced, silentMs });
}

/** A stream that its client leaves. */
export interface LeftStream {
  readonly route: Route;
  /** What is known of it now. */
  readonly counts: SeenCounts;
  readonly delivered: boolean;
}

/** Bytes that an upstream may spend on a token that nobody reads: a frame of its own, with probabilities. */
const BYTES_PER_TOKEN = 4_096;

/**
 * A client that leaves does not save what it has caused (promise 3): where its model may have thought out of sight, the
 * upstream is read on for its count. What nobody was given nobody pays for, and such a stream is stopped at once.
 * @returns undefined where the upstream is to be stopped.
 */
export function leavingOf(
  run: Run,
  admitted: Permit,
  { route, counts, delivered }: LeftStream,
  parts: PipelineParts,
): Leaving | undefined {
  const upstream = parts.settings().upstreams.get(route.upstream);
  const drains = upstream?.onClientGone === "drain";
  const graceMs = upstream?.clientGoneGraceMs ?? 0;
  const pace = paceOf(run, route, parts);
  if (!drains && (!delivered || graceMs === 0 || pace.thinks === "no")) return undefined;
  return {
    forMs: drains ? Number.POSITIVE_INFINITY : graceMs,
    bytesMax: BYTES_PER_TOKEN * admitted.outputMost * admitted.terms.choices,
    doubt: drains ? undefined : { tokens: doubtedTokens(counts, pace), perS: pace.hiddenPerS },
    covers(seen) {
      const permit = run.permit ?? admitted;
      return permit.unmetered || costSoFar(permit, seen, { cause: "client_gone", pace }).cost < permit.hold;
    },
    begun: (end) => parts.left.add(admitted.tag, end),
  };
}
