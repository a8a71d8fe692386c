/**
 * One request from admission to settlement, as `src/request/serve.ts` runs it, with an upstream that answers at random.
 * What the client could have seen is recorded in the truth.
 */
import { admit } from "../../../src/admit/admit.ts";
import type { Permit } from "../../../src/admit/permit.ts";
import { settlementOf } from "../../../src/settle/charge.ts";
import { CheckpointPace } from "../../../src/settle/journal.ts";
import { voidOf } from "../../../src/settle/lines.ts";
import type { Ending } from "../../../src/settle/meter.ts";
import { StoreError } from "../../../src/store/contract.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { AccountTag, KeyHash } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { newRequestId, type RequestId } from "../../../src/values/request-id.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { MODEL } from "./catalog.ts";
import type { Chance } from "./chance.ts";
import type { Running } from "./gateway.ts";
import { resultOf, type SeenRequest, type Truth, VOID } from "./truth.ts";

export interface Caller {
  readonly tag: AccountTag;
  readonly hash: KeyHash;
  readonly keyId: string;
}

export interface ClientParts {
  readonly chance: Chance;
  readonly truth: Truth;
  readonly holdTtlMs: number;
  readonly count: (what: string) => void;
  readonly note: (who: string, what: string) => void;
  /**
   * Called with the group of an admitted request and the step at which it was sent, to detect decisions on stale data.
   */
  readonly onAdmitted: (caller: Caller, group: string, askedAtStep: number) => void;
  readonly step: () => number;
}

/** Resolves when the client has its answer, and never if the gateway dies first. */
export async function request(caller: Caller, gateway: Running, parts: ClientParts): Promise<void> {
  const { chance, truth } = parts;
  const { clock, charging } = gateway;
  if (!charging.journal.health().usable) return parts.count("refused_journal");
  const id = newRequestId(clock.wallMs(), (count) => chance.bytes(count));
  const askedAtStep = parts.step();
  const permit = await admit(
    {
      requestId: id,
      protocol: "chat",
      key: caller,
      facts: {
        protocol: "chat",
        model: MODEL.name,
        limit: chance.is(0.7) ? { field: "max_tokens", value: 1 + chance.below(600) } : undefined,
        choices: 1,
        bodyBytes: 0,
        textBytes: Math.round(chance.skewed(30, 20_000)),
        media: [],
        compacts: false,
        serviceTier: undefined,
        tierParam: undefined,
        stream: true,
        hostedTools: [],
        demandedTools: [],
        hasOwnTools: true,
        options: [],
        thinkingBudget: 0,
        textTokens: 0,
        includeUsage: false,
      },
      address: "",
      idempotency: undefined,
      holdTtlMs: parts.holdTtlMs,
    },
    gateway.admit,
  );
  if (isRefusal(permit)) {
    parts.note(gateway.process.name, `refuses ${id.slice(-6)}: ${permit.cause}`);
    return parts.count(permit.cause === "store_unavailable" ? "refused_store" : "refused");
  }
  parts.count("admitted");
  parts.onAdmitted(caller, permit.group.name, askedAtStep);
  const voided = voidOf(permit);
  const seen = seenOf(permit, voided, gateway);
  truth.requests.set(id, seen);
  charging.journal.open({ voided, hold: permit.hold });
  await settle(id, settlementOf(permit, await answer(permit, seen, gateway, parts)).ask, seen, gateway, parts);
}

function seenOf(permit: Permit, voided: SettleAsk, gateway: Running): SeenRequest {
  return {
    tag: permit.tag,
    gateway: gateway.process.name,
    hold: permit.hold,
    entitlement: permit.entitlement,
    attempted: false,
    written: new Set([VOID]),
    left: new Set([VOID]),
    last: voided,
    answered: false,
    unrecorded: false,
  };
}

/** The upstream's reply: none, complete or cut. It is recorded as it proceeds. */
async function answer(permit: Permit, seen: SeenRequest, gateway: Running, parts: ClientParts): Promise<Ending> {
  const { chance } = parts;
  const { clock, process } = gateway;
  const [route] = MODEL.routes;
  if (chance.is(0.08)) {
    await process.sleep(chance.skewed(5, 5_000));
    const cause = "upstream_unavailable";
    return { delivered: false, complete: false, route: undefined, cause, measured: measured(0, undefined) };
  }
  const output = 1 + chance.below(Math.min(permit.outputLimit ?? permit.terms.outputLimit, permit.terms.outputLimit));
  const pieces = 1 + chance.below(6);
  const pauseMs = chance.skewed(2, 8_000) / pieces;
  const pace = new CheckpointPace();
  const cutAt = chance.is(0.2) ? chance.below(pieces) : pieces;
  let produced = 0;
  for (let piece = 0; piece < cutAt; piece++) {
    await process.sleep(pauseMs);
    produced = Math.round(((piece + 1) / pieces) * output * 4);
    seen.attempted = true;
    const soFar: Ending = {
      delivered: true,
      complete: false,
      route,
      cause: "orphaned",
      measured: measured(produced, undefined),
    };
    if (chance.is(0.1)) void extend(permit, gateway, parts);
    if (pace.isDue(clock.monotonicMs(), produced)) checkpoint(settlementOf(permit, soFar).ask, seen, gateway);
  }
  seen.attempted = true;
  const complete = cutAt === pieces;
  const usage = complete && chance.is(0.9) ? { ...NO_USAGE, input: permit.terms.inputEstimate, output } : undefined;
  const delivered = produced > 0 && !chance.is(0.05);
  return {
    delivered,
    complete,
    route,
    cause: complete ? "client_gone" : "upstream_cut",
    measured: measured(produced, usage),
  };
}

/** A stream whose hold runs low asks for an extension. Its output here does not depend on the answer. */
async function extend({ requestId, tag, hold }: Permit, { admin }: Running, { count }: ClientParts): Promise<void> {
  const target = nanoUsd(hold * 2n);
  const answer = await admin.extend({ requestId, tag, target }).catch((error: unknown) => {
    if (error instanceof StoreError) return { outcome: "unavailable" } as const;
    throw error;
  });
  count(answer.outcome === "held" && answer.hold < target ? "extend part" : `extend ${answer.outcome}`);
}

function measured(producedBytes: number, usage: Ending["measured"]["usage"]): Ending["measured"] {
  const produced = { bytes: producedBytes, tokens: Math.ceil(producedBytes / 4), deltas: 1 };
  return { usage, final: usage !== undefined, produced, silentMs: 0 };
}

function checkpoint(ask: SettleAsk, seen: SeenRequest, gateway: Running): void {
  recordWrite(ask, seen, gateway, () => gateway.charging.journal.checkpoint(ask));
}

/** Writes to the journal, and records whether the write reached the file at once. */
function recordWrite<T>(ask: SettleAsk, seen: SeenRequest, { process, writes }: Running, work: () => T): T {
  const settledAs = resultOf(ask);
  seen.written.add(settledAs);
  seen.left.add(settledAs);
  seen.last = ask;
  const before = writes();
  const result = work();
  if (process.alive && writes() > before) {
    seen.left.clear();
    seen.left.add(settledAs);
  }
  return result;
}

async function settle(
  id: RequestId,
  ask: SettleAsk,
  seen: SeenRequest,
  gateway: Running,
  parts: ClientParts,
): Promise<void> {
  const { process, charging } = gateway;
  parts.note(process.name, `settles ${id.slice(-6)} with ${ask.amount}${ask.voided ? " (void)" : ""}`);
  await recordWrite(ask, seen, gateway, () => charging.settler.settle(ask));
  seen.answered = true;
  parts.count("answered");
  gateway.onAnswered();
}
