/**
 * `node bench/leaving.ts`: what clients that disconnect in mid-stream are charged, compared with what the upstream bills. Thousands of
 * replies are generated with a fixed seed. Completed ones are samples for `src/settle/observed.ts`; from the others the client disconnects
 * at a random point, or at one that is to its advantage. Every way to bill prices the same replies. The figures are in
 * docs/decisions/what-a-disconnect-costs.md.
 */
import process from "node:process";
import { Silence } from "../src/request/silence.ts";
import { type Evidence, type MeasuredReply, meter } from "../src/settle/meter.ts";
import { Observed, type Pace } from "../src/settle/observed.ts";
import { NO_USAGE } from "../src/values/tokens/usage.ts";

const MS_PER_S = 1_000;
const LEFT_REPLIES = 4_000;
const TAUGHT_BY = 100;
const OUTPUT_MOST = 32_000;
const USD_PER_TOKEN = 15 / 1e6;
const PLACE = { upstream: "up", upstreamModel: "model" };

/** Mulberry32: small, and the same on every machine. */
function chanceOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A reply as the upstream produces it; times are since its request. */
interface Reply {
  readonly msPerToken: number;
  readonly startMs: number;
  readonly hidden: number;
  readonly visible: number;
  /** Bytes per visible token. */
  readonly bytes: number;
  /** Tokens estimated from characters, per visible token. */
  readonly factor: number;
  /** Tokens that come in one event. */
  readonly perEvent: number;
}

interface World {
  readonly name: string;
  readonly hides: boolean;
  readonly pace: number;
  readonly perEvent: number;
  /** The kind of text that an attacker asks for. */
  readonly dense: boolean;
}

function draw(chance: () => number, world: World): Reply {
  const normal = () => Math.sqrt(-2 * Math.log(1 - chance())) * Math.cos(2 * Math.PI * chance());
  const lognormal = (median: number, spread: number) => median * Math.exp(spread * normal());
  const thinks = world.hides && chance() < 0.8;
  return {
    msPerToken: MS_PER_S / lognormal(world.pace, 0.25),
    startMs: lognormal(600, 0.6),
    hidden: thinks ? Math.min(Math.round(lognormal(1_200, 1.2)), OUTPUT_MOST - 4_000) : 0,
    visible: Math.max(20, Math.min(Math.round(lognormal(400, 0.8)), 4_000)),
    // English has 4.3 bytes to a token and 1.1 tokens by the characters; base64 1.45 and 0.95.
    bytes: world.dense ? 1.45 : 4.3,
    factor: (world.dense ? 0.95 : 1.1) * Math.exp(0.05 * normal()),
    perEvent: world.perEvent,
  };
}

const shownFromMs = (reply: Reply) => reply.startMs + reply.hidden * reply.msPerToken;
const endMs = (reply: Reply) => shownFromMs(reply) + reply.visible * reply.msPerToken;
const visibleAt = (reply: Reply, ms: number) =>
  Math.max(0, Math.min(reply.visible, Math.floor((ms - shownFromMs(reply)) / reply.msPerToken)));
const madeAt = (reply: Reply, ms: number) =>
  Math.max(0, Math.min(reply.hidden + reply.visible, Math.floor((ms - reply.startMs) / reply.msPerToken)));

/** What the gateway knows of a reply at a given time. */
function seenAt(reply: Reply, ms: number, silentUntilMs: number): MeasuredReply {
  const shown = visibleAt(reply, ms);
  const events = Math.floor(shown / reply.perEvent);
  const silence = new Silence(0);
  const saw = (deltas: number, atMs: number) =>
    silence.saw({ usage: undefined, final: false, produced: { bytes: 0, tokens: 0, deltas } }, atMs);
  for (let event = 1; event <= events; event++) {
    saw(event, shownFromMs(reply) + event * reply.perEvent * reply.msPerToken);
  }
  const tokens = events * reply.perEvent;
  const produced = {
    bytes: Math.round(tokens * reply.bytes),
    tokens: Math.ceil(tokens * reply.factor),
    deltas: events,
  };
  return { usage: undefined, final: false, produced, silentMs: silence.ms(silentUntilMs) };
}

/** A way to bill a reply whose client has disconnected. */
interface Way {
  readonly name: string;
  /** Maximum time that the gateway keeps reading. */
  readonly readOnMs: number;
  /** Whether the gateway keeps reading only as long as that costs less than what is in doubt. */
  readonly doubted?: boolean;
  readonly byEvidence: boolean;
}

const WAYS: readonly Way[] = [
  { name: "stop, bytes / 4", readOnMs: 0, byEvidence: false },
  { name: "stop, evidence", readOnMs: 0, byEvidence: true },
  { name: "0.5 s, evidence", readOnMs: 500, byEvidence: true },
  { name: "1 s, evidence", readOnMs: 1_000, byEvidence: true },
  { name: "2 s, evidence", readOnMs: 2_000, byEvidence: true },
  { name: "10 s, evidence", readOnMs: 10_000, byEvidence: true },
  { name: "doubt, 2 s", readOnMs: 2_000, doubted: true, byEvidence: true },
  { name: "doubt, 5 s", readOnMs: 5_000, doubted: true, byEvidence: true },
  { name: "doubt, 10 s", readOnMs: 10_000, doubted: true, byEvidence: true },
  { name: "doubt, 30 s", readOnMs: 30_000, doubted: true, byEvidence: true },
  { name: "to the end", readOnMs: Number.POSITIVE_INFINITY, byEvidence: true },
];

/** When clients disconnect: always after the first visible output, because nothing is owed before it. */
const LEAVERS: readonly { readonly name: string; when(reply: Reply, chance: () => number): number }[] = [
  {
    name: "honest, at any time",
    when: (reply, chance) => shownFromMs(reply) + chance() * reply.visible * reply.msPerToken,
  },
  { name: "at the last word", when: endMs },
  { name: "behind a tenth", when: (reply) => shownFromMs(reply) + 0.1 * reply.visible * reply.msPerToken },
];

/** Decides which of the streams are read to their count anyway. */
const CHECKS = new Observed(chanceOf(11));
/** Time from the last token to the count. */
const COUNT_BEHIND_MS = 40;

interface Bill {
  readonly charged: number;
  readonly billed: number;
  /** What the upstream would have billed, had it been stopped at once. */
  readonly atOnce: number;
  readonly counted: boolean;
}

function billOf(reply: Reply, leftMs: number, way: Way, pace: Pace): Bill {
  const atOnce = madeAt(reply, leftMs);
  const isBelieved = pace.thinks === "no" && Number.isFinite(way.readOnMs);
  const isStopped = isBelieved && !(way.doubted && CHECKS.drawCheck(seenAt(reply, leftMs, leftMs)));
  const stoppedMs = leftMs + (isStopped ? 0 : Math.min(way.readOnMs, way.doubted ? doubtMs(reply, leftMs, pace) : 1e9));
  const all = reply.hidden + reply.visible;
  if (endMs(reply) + COUNT_BEHIND_MS <= stoppedMs) return { charged: all, billed: all, atOnce, counted: true };
  const billed = madeAt(reply, stoppedMs);
  const seen = seenAt(reply, stoppedMs, leftMs);
  if (!way.byEvidence) return { charged: Math.ceil(seen.produced.bytes / 4), billed, atOnce, counted: false };
  const evidence: Evidence = {
    input: 0,
    visibleFactor: pace.visibleFactor,
    byEvent: true,
    hiddenPerS: pace.thinks === "no" ? 0 : pace.hiddenPerS,
    outputMost: OUTPUT_MOST,
    contextTokens: 0,
    unseenCalls: {},
  };
  return { charged: meter(seen, evidence).usage.output, billed, atOnce, counted: false };
}

/** How long further reading costs less than what may have been hidden; at least half a second's worth. */
function doubtMs(reply: Reply, leftMs: number, pace: Pace): number {
  const silentMs = seenAt(reply, leftMs, leftMs).silentMs;
  return ((silentMs + 500) / MS_PER_S) * pace.hiddenPerS * reply.msPerToken;
}

function taught(world: World, replies: number): Observed {
  const chance = chanceOf(7);
  const observed = new Observed();
  for (let i = 0; i < replies; i++) {
    const reply = draw(chance, { ...world, dense: false });
    const { produced, silentMs } = seenAt(reply, endMs(reply) + 1, endMs(reply) + 1);
    observed.note(PLACE, { usage: { ...NO_USAGE, output: reply.hidden + reply.visible }, produced, silentMs });
  }
  return observed;
}

const WORLDS: readonly World[] = [
  { name: "shows all it writes", hides: false, pace: 60, perEvent: 1, dense: false },
  { name: "shows all, base64, 5 tokens an event", hides: false, pace: 60, perEvent: 5, dense: true },
  { name: "thinks out of sight", hides: true, pace: 80, perEvent: 1, dense: false },
  { name: "thinks, fast hardware", hides: true, pace: 400, perEvent: 1, dense: false },
];

const percent = (value: number) => `${Math.round(100 * value)} %`.padStart(7);
const usd = (tokens: number) => (tokens * USD_PER_TOKEN).toFixed(2).padStart(8);

function row(world: World, replies: number): void {
  const pace = taught(world, replies).paceOf(PLACE, false);
  const figures = `${Math.round(pace.hiddenPerS)} hidden tokens a second, factor ${pace.visibleFactor.toFixed(2)}`;
  console.log(`\n${world.name}; behind ${replies} replies: thinks ${pace.thinks}, ${figures}`);
  console.log("  leaves               way               charged / billed   short USD   over USD  extra USD  counted");
  for (const leaver of LEAVERS) {
    for (const way of WAYS) {
      const chance = chanceOf(11);
      const bills = Array.from({ length: LEFT_REPLIES }, () => {
        const reply = draw(chance, world);
        return billOf(reply, leaver.when(reply, chance), way, pace);
      });
      const sum = (of: (bill: Bill) => number) => bills.reduce((total, bill) => total + of(bill), 0);
      const perThousand = 1_000 / LEFT_REPLIES;
      const share = percent(sum((bill) => bill.charged) / sum((bill) => bill.billed));
      const short = usd(perThousand * sum(({ charged, billed }) => Math.max(0, billed - charged)));
      const over = usd(perThousand * sum(({ charged, billed }) => Math.max(0, charged - billed)));
      const extra = usd(perThousand * sum(({ billed, atOnce }) => billed - atOnce));
      const counted = percent(sum((bill) => Number(bill.counted)) / LEFT_REPLIES);
      console.log(
        `  ${leaver.name.padEnd(20)} ${way.name.padEnd(18)} ${share.padStart(12)}      ${short}   ${over}   ${extra}  ${counted}`,
      );
    }
  }
}

console.log(`Per 1,000 left replies, output only, at ${USD_PER_TOKEN * 1e6} USD a million tokens.`);
for (const world of WORLDS) for (const replies of [0, TAUGHT_BY]) row(world, replies);
process.exitCode = 0;
