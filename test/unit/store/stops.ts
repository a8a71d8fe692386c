/**
 * Every script that writes, in every case in which it writes something different, stopped before each of its commands: what it
 * has written until then, and what the next script and the repeated call make of it. The whole keyspace of Redis is compared,
 * on a clock that stands still.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import type { AdmitAsk } from "../../../src/store/admission.ts";
import type { Store } from "../../../src/store/contract.ts";
import { ARCHIVE_AGE_MS } from "../../../src/store/ledger/opening.ts";
import type { NoticeTerms, NoticeWriter } from "../../../src/store/notices.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { SIGN_INS_MAX, type SignInKind } from "../../../src/store/sign-ins.ts";
import type { CodeHash } from "../../../src/values/code.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NOTICE_KINDS } from "../../../src/values/settings.ts";
import { startRedis } from "../../rig/redis.ts";
import { endOfMessage } from "../../rig/resp.ts";
import { type ScriptStopper, type StoppableScript, startScriptStopper } from "../../rig/script-stopper.ts";
import {
  admitAsk,
  admitted,
  cardTerms,
  codeHashOf,
  DAY_MS,
  leftUnpaid,
  makeAccount,
  ridOf,
  settleAsk,
  tagOf,
  terms,
} from "./asks.ts";
import { archiveAsk, archiveThrough } from "./contract-archive.ts";

export const START_MS = Date.UTC(2026, 5, 1, 12);
const NAME = "Stopped";
export const TAG = tagOf(NAME);

/** What a scene runs on. */
export interface Stage {
  readonly store: Store;
  /** Sets the clock to this long after the start. */
  readonly clock: (afterMs: number) => void;
}

export interface Scene {
  readonly name: string;
  readonly script: string;
  /** One of several scripts of its operation: the state between two of them is neither old nor new. */
  readonly step?: true;
  /** A stop may leave an account that cannot be found. */
  readonly orphan?: true;
  prepare(stage: Stage): Promise<void>;
  act(stage: Stage): Promise<unknown>;
}

let wanted: NoticeTerms | undefined;
/** Notices are written only in scenes that say so. */
export const NOTICES_OF_SCENES: NoticeWriter = { terms: () => wanted, noted: () => undefined };

/** Before a scene: turns notices on. */
async function told(prepare: Promise<void>): Promise<void> {
  await prepare;
  wanted = { kinds: new Set(NOTICE_KINDS), balanceBelow: nanoUsd(990n) };
}

const FULL = terms({ requestsPerMinute: 60, tokensPerMinute: 6_000, concurrency: 5 });
const FEW_TOKENS = terms({ requestsPerMinute: 60, tokensPerMinute: 10 });
const KEY = { key: "1".repeat(64), fingerprint: "2".repeat(64) };
const TOKENS = { input: 40, cachedInput: 10, cacheWrite: 0, output: 20, reasoning: 5 };
const LATE_MS = 3_600_000;

const ask = (rid: number, changes: Partial<AdmitAsk> = {}): AdmitAsk =>
  admitAsk({ tag: TAG, requestId: ridOf(rid), groups: [FULL], inputTokens: 50, ...changes });

const cardAsk = (rid: number): AdmitAsk => ask(rid, { plans: ["pro"], groups: [cardTerms()] });

function charge(rid: number, changes: Parameters<typeof settleAsk>[2] = {}, admittedAtMs = START_MS): SettleAsk {
  const permit = { storeTimeMs: admittedAtMs, group: "big", keyId: `key_${NAME}`, entitlement: undefined };
  const used = { amount: 30n, tokensTaken: 50, tokensUsed: 70, tokens: TOKENS };
  return settleAsk(ask(rid), permit, { ...used, memo: '{"input":40}', ...changes });
}

/** A disconnected request that costs 9 within an allowance, or is charged at 40. */
function leaves(rid: number, allowance = 18n): SettleAsk {
  const usage = {
    input: 30,
    cached_input: 0,
    cache_write: 0,
    cache_write_1h: 0,
    output: 0,
    reasoning: 0,
    tool_calls: {},
  };
  const said = { ...usage, upstream: "east", upstream_model: "m-east", cost: "9" };
  const left = leftUnpaid(allowance, 40n, { memo: JSON.stringify({ ...said, paid: "allowance_used" }), cost: 9n });
  const costs = left.costs.map((cost) => ({ ...cost, absorbed: cost.cost, charged: false }));
  const facts = { amount: 0n, voided: true, memo: JSON.stringify(said), costs, leftUnpaid: left };
  const absorbed = { absorbed: 9n, absorbedCause: "client_gone", upstream: "east" };
  return charge(rid, { ...facts, ...absorbed, ...(rid === 1 ? { idempotency: KEPT } : {}) });
}

const cardCharge = (rid: number, entitlement: string, changes: Parameters<typeof settleAsk>[2] = {}): SettleAsk =>
  charge(rid, { group: "cards", kind: "time_card", entitlement, tokensPerMinute: undefined, ...changes });

async function account({ store }: Stage, group = "big"): Promise<void> {
  await makeAccount(store, NAME, { group });
}

async function card({ store }: Stage, id: string, quota: bigint | undefined, afterPrevious = false): Promise<void> {
  const given = { id, card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious, reference: id };
  await store.grant(TAG, { ...given, quota: quota === undefined ? undefined : nanoUsd(quota) });
}

async function admit({ store }: Stage, asked: AdmitAsk): Promise<void> {
  admitted(await store.admit(asked));
}

/** Three expired holds, in the scopes of two groups and of a card. */
async function expired(stage: Stage, earlier = async () => {}): Promise<void> {
  await account(stage);
  await earlier();
  await card(stage, "c0", 500n);
  await admit(stage, ask(91, { holdTtlMs: 1_000 }));
  await admit(stage, ask(92, { holdTtlMs: 1_000, groups: [terms({ perKey: true })] }));
  await stage.store.changeKey(TAG, `key_${NAME}`, { group: "cards" }, START_MS + 1);
  await admit(stage, { ...cardAsk(93), holdTtlMs: 1_000 });
  await stage.store.changeKey(TAG, `key_${NAME}`, { group: "big" }, START_MS + 2);
  stage.clock(LATE_MS);
}

const ENDING = { kind: "card_ending", ref: "c0", data: { card: "c0" } } as const;
const CODES = [1, 2].map((n) => ({ id: `code${n}`, hash: codeHashOf(`code${n}`) }));
const CODE = CODES[0]?.hash as CodeHash;
const FACTS = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, starts: "at_redemption" } as const;

async function codes(stage: Stage): Promise<void> {
  await account(stage);
  await stage.store.createCodes({ ...FACTS, quota: nanoUsd(300n) }, CODES);
}

const redeem = ({ store }: Stage) => store.redeem({ hash: CODE, tag: TAG });

/** A ledger of six lines that are old enough for the archive. */
async function oldLedger(stage: Stage): Promise<void> {
  await account(stage);
  for (const rid of [1, 2, 3]) {
    await admit(stage, ask(rid));
    await stage.store.settle(charge(rid));
  }
  await stage.store.credit(TAG, { id: "p1", amount: 5n, kind: "topup", note: "" });
  stage.clock(ARCHIVE_AGE_MS + DAY_MS);
}

const settles = (name: string, prepare: Scene["prepare"], asked: SettleAsk): Scene => ({
  name,
  script: "settle",
  prepare,
  act: ({ store }) => store.settle(asked),
});
const admits = (name: string, prepare: Scene["prepare"], asked: AdmitAsk): Scene => ({
  name,
  script: "admit",
  prepare,
  act: ({ store }) => store.admit(asked),
});

function archives(name: string, through: number, prepare: Scene["prepare"]): Scene {
  let asked: Parameters<Store["archiveLedger"]>[1] | undefined;
  return {
    name,
    script: "ledger-archive",
    async prepare(stage) {
      await prepare(stage);
      asked = await archiveAsk(stage.store, TAG, through);
    },
    act: ({ store }) => store.archiveLedger(TAG, asked as NonNullable<typeof asked>),
  };
}

const KEPT = { ...KEY, streamed: true, untilMs: START_MS + LATE_MS };
const ATTEMPTS = ["east", "west"].map((upstream, i) => ({
  upstream,
  cause: "upstream_timeout",
  amount: nanoUsd(BigInt(3 + i)),
  memo: "{}",
}));

async function inCards(stage: Stage): Promise<void> {
  await account(stage, "cards");
  await card(stage, "c0", 300n);
}

/** As many sessions as allowed, a link, and an expired record of each. */
async function manySignIns(stage: Stage): Promise<void> {
  await account(stage);
  const keep = (kind: SignInKind, id: string, lastsMs: number) =>
    stage.store.keepSignIn(TAG, { kind, id, data: "{}", lastsMs });
  await keep("link", "once", 2 * LATE_MS);
  await keep("link", "over", 1_000);
  for (let n = 0; n < SIGN_INS_MAX; n++) await keep("session", `s${n}`, 2 * LATE_MS);
  stage.clock(LATE_MS);
}

export const SCENES: readonly Scene[] = [
  admits("a request on a balance", (s) => account(s), ask(1, { groups: [terms()] })),
  admits("a request within every limit", (s) => account(s), ask(1)),
  admits("a request under an idempotency key", (s) => account(s), ask(1, { idempotency: KEY })),
  admits("a request paid by a card", inCards, cardAsk(1)),
  admits(
    "a request paid by a card without a quota",
    async (s) => {
      await account(s, "cards");
      await card(s, "c0", undefined);
    },
    cardAsk(1),
  ),
  admits("a request after expired holds", (s) => expired(s), ask(1)),
  admits("a refusal after expired holds", (s) => expired(s), ask(1, { plans: ["none"] })),
  admits(
    "a refusal for its tokens",
    async (s) => {
      await account(s);
      await admit(s, ask(2, { groups: [FEW_TOKENS] }));
    },
    ask(1, { groups: [FEW_TOKENS] }),
  ),
  ...(["settled", "voided"] as const).map((end) =>
    admits(
      `a request that was ${end} before`,
      async (s) => {
        await account(s);
        await admit(s, ask(1));
        await s.store.settle(charge(1, end === "voided" ? { voided: true, amount: 0n } : {}));
      },
      ask(1),
    ),
  ),
  {
    name: "a hold on a balance",
    script: "extend",
    prepare: async (s) => {
      await account(s);
      await admit(s, ask(1));
    },
    act: ({ store }) => store.extend({ tag: TAG, requestId: ridOf(1), target: nanoUsd(250n) }),
  },
  {
    name: "a hold on a card",
    script: "extend",
    prepare: async (s) => {
      await inCards(s);
      await admit(s, cardAsk(1));
    },
    act: ({ store }) => store.extend({ tag: TAG, requestId: ridOf(1), target: nanoUsd(250n) }),
  },
  {
    name: "a hold after expired ones",
    script: "extend",
    prepare: (s) => expired(s, () => admit(s, ask(1, { holdTtlMs: 2 * LATE_MS }))),
    act: ({ store }) => store.extend({ tag: TAG, requestId: ridOf(1), target: nanoUsd(250n) }),
  },
  settles(
    "a charge within its hold",
    async (s) => {
      await account(s);
      await admit(s, ask(1));
    },
    charge(1),
  ),
  settles(
    "a charge with other holds and charges",
    async (s) => {
      await account(s);
      for (const rid of [1, 2, 3]) await admit(s, ask(rid));
      await s.store.settle(charge(3));
    },
    charge(1),
  ),
  settles(
    "a charge above all funds, with failed tries",
    async (s) => {
      await account(s);
      await admit(s, ask(1));
    },
    charge(1, { amount: 1_500n, absorbed: 7n, absorbedCause: "client_gone", upstream: "east", attempts: ATTEMPTS }),
  ),
  settles(
    "a charge above all funds, again",
    async (s) => {
      await account(s);
      await admit(s, ask(1));
      await admit(s, ask(2));
      await s.store.settle(charge(2, { amount: 950n }));
    },
    charge(1, { amount: 250n }),
  ),
  settles(
    "a voided request",
    async (s) => {
      await account(s);
      await admit(s, ask(1));
    },
    charge(1, { amount: 0n, voided: true, tokens: undefined }),
  ),
  settles(
    "a voided request that had a cost",
    async (s) => {
      await account(s);
      await admit(s, ask(1));
    },
    charge(1, { amount: 0n, voided: true, absorbed: 9n, absorbedCause: "client_gone", upstream: "east" }),
  ),
  ...([true, false] as const).map((charged) =>
    settles(
      `a client that disconnected, ${charged ? "beyond" : "within"} its allowance`,
      async (s) => {
        await account(s);
        await admit(s, ask(1, { idempotency: KEY }));
        await admit(s, ask(2));
        await s.store.settle(leaves(2));
      },
      leaves(1, charged ? 17n : 18n),
    ),
  ),
  settles("a charge with a notice", (s) => told(account(s).then(() => admit(s, ask(1)))), charge(1)),
  settles("a voided request that was never admitted", (s) => account(s), charge(1, { amount: 0n, voided: true })),
  settles(
    "a charge of 0",
    async (s) => {
      await account(s);
      await admit(s, ask(1, { groups: [terms({ holdFull: 0n, holdMin: 0n })] }));
    },
    charge(1, { amount: 0n }),
  ),
  settles(
    "a charge to a card",
    async (s) => {
      await inCards(s);
      await admit(s, cardAsk(1));
    },
    cardCharge(1, "c0"),
  ),
  settles(
    "a charge to a card without a quota",
    async (s) => {
      await account(s, "cards");
      await card(s, "c0", undefined);
      await admit(s, cardAsk(1));
    },
    cardCharge(1, "c0"),
  ),
  settles("a charge after expired holds, including its own", (s) => expired(s), charge(91)),
  settles("a late charge after expired holds", (s) => expired(s), charge(7)),
  settles(
    "a charge under an idempotency key",
    async (s) => {
      await account(s);
      await admit(s, ask(1, { idempotency: KEY }));
    },
    charge(1, { idempotency: KEPT }),
  ),
  settles(
    "a voided request under an idempotency key",
    async (s) => {
      await account(s);
      await admit(s, ask(1, { idempotency: KEY }));
    },
    charge(1, { amount: 0n, voided: true, idempotency: KEPT }),
  ),
  {
    name: "a top-up",
    script: "credit",
    prepare: (s) => account(s),
    act: ({ store }) => store.credit(TAG, { id: "p1", amount: 500n, kind: "topup", note: "line\u001fline\u001e" }),
  },
  {
    name: "a negative adjustment",
    script: "credit",
    prepare: (s) => account(s),
    act: ({ store }) => store.credit(TAG, { id: "p1", amount: -500n, kind: "adjust", note: "" }),
  },
  {
    name: "a negative adjustment of what expired holds kept",
    script: "credit",
    prepare: (s) => expired(s),
    act: ({ store }) => store.credit(TAG, { id: "p1", amount: -1_000n, kind: "adjust", note: "" }),
  },
  {
    name: "an adjustment with a notice",
    script: "credit",
    prepare: (s) => told(account(s)),
    act: ({ store }) => store.credit(TAG, { id: "p1", amount: -500n, kind: "adjust", note: "" }),
  },
  { name: "a card", script: "grant", prepare: (s) => account(s), act: (s) => card(s, "c0", 300n) },
  {
    name: "a card after another",
    script: "grant",
    prepare: inCards,
    act: (s) => card(s, "c1", undefined, true),
  },
  archives("the beginning of a ledger", 3, oldLedger),
  archives("more of a ledger", 4, async (s) => {
    await oldLedger(s);
    await archiveThrough(s.store, TAG, 2);
  }),
  ...["account-create", "name-reserve"].map(
    (script): Scene => ({
      name: "an account",
      script,
      step: true,
      prepare: async () => {},
      act: ({ store }) => store.createAccount({ tag: TAG, name: NAME, plan: "free" }),
    }),
  ),
  {
    name: "an account whose name is taken",
    script: "account-drop",
    step: true,
    orphan: true,
    prepare: async ({ store }) => {
      await store.createAccount({ tag: tagOf("Other"), name: NAME, plan: "free" });
    },
    act: ({ store }) => store.createAccount({ tag: TAG, name: NAME, plan: "free" }),
  },
  {
    name: "a plan",
    script: "account-plan",
    prepare: (s) => account(s),
    act: ({ store }) => store.setPlan(TAG, "pro"),
  },
  {
    name: "an account's status and labels",
    script: "account-change",
    prepare: (s) => account(s),
    act: ({ store }) => store.changeAccount(TAG, { status: "suspended", labels: { team: "red" } }, START_MS + 5),
  },
  {
    name: "an account's end",
    script: "account-close",
    prepare: (s) => account(s),
    act: ({ store }) => store.closeAccount(TAG, START_MS + 5),
  },
  ...["account-rename", "name-claim", "name-move"].map(
    (script): Scene => ({
      name: "another name",
      script,
      step: true,
      prepare: (s) => account(s),
      act: ({ store }) => store.renameAccount(TAG, "Another", START_MS + 5),
    }),
  ),
  {
    name: "a key",
    script: "key-create",
    prepare: async ({ store }) => {
      await store.createAccount({ tag: TAG, name: NAME, plan: "free" });
    },
    act: ({ store }) => store.createKey(TAG, { id: "key_1", hash: "a".repeat(64) as never, group: "big" }),
  },
  {
    name: "a key's group",
    script: "key-change",
    prepare: (s) => account(s),
    act: ({ store }) => store.changeKey(TAG, `key_${NAME}`, { group: "cards" }, START_MS + 5),
  },
  {
    name: "a suspension with a notice",
    script: "key-change",
    prepare: (s) => told(account(s)),
    act: ({ store }) => store.changeKey(TAG, `key_${NAME}`, { status: "suspended" }, START_MS + 5),
  },
  {
    name: "a threshold",
    script: "account-notify",
    prepare: (s) => account(s),
    act: ({ store }) => store.setNotifyBelow(TAG, nanoUsd(7n), START_MS + 5),
  },
  {
    name: "a notice",
    script: "notice-add",
    prepare: (s) => account(s),
    act: ({ store }) => store.addNotice(TAG, ENDING, { name: ENDING.ref, latest: 1 }),
  },
  {
    name: "a delivered notice",
    script: "notice-take",
    prepare: async (s) => {
      await account(s);
      await s.store.addNotice(TAG, ENDING, { name: ENDING.ref, latest: 1 });
    },
    act: ({ store }) => store.takeNotice(TAG, 1),
    // The remainder of a taken notice does no harm, and the next notice overwrites it.
    step: true,
  },
  {
    name: "the lease to deliver notices",
    script: "notice-lease",
    prepare: async () => {},
    act: ({ store }) => store.leaseNotices({ holder: "one", ms: 1_000, force: false }),
  },
  {
    name: "a session that replaces the oldest, with expired ones",
    script: "sign-in-keep",
    prepare: manySignIns,
    act: ({ store }) => store.keepSignIn(TAG, { kind: "session", id: "new", data: "{}", lastsMs: LATE_MS }),
    // One too many exists until the next one is kept.
    step: true,
  },
  {
    name: "a link that is taken",
    script: "sign-in-drop",
    prepare: manySignIns,
    act: ({ store }) => store.takeSignIn(TAG, "link", "once"),
  },
  {
    name: "all sessions",
    script: "sign-in-drop",
    prepare: manySignIns,
    act: ({ store }) => store.dropSignIns(TAG, "session"),
  },
  {
    name: "a key's value",
    script: "key-rotate",
    prepare: (s) => account(s),
    act: ({ store }) =>
      store.rotateKey(TAG, `key_${NAME}`, { hash: "b".repeat(64) as never, untilMs: START_MS + 60_000 }, START_MS + 5),
  },
  {
    name: "a key's end",
    script: "key-change",
    prepare: (s) => account(s),
    act: ({ store }) => store.revokeKey(TAG, `key_${NAME}`, START_MS + 5),
  },
  ...["code-create", "code-index"].map(
    (script): Scene => ({ name: "codes", script, step: true, prepare: async () => {}, act: codes }),
  ),
  {
    name: "codes of a batch",
    script: "batch-index",
    step: true,
    prepare: async () => {},
    act: ({ store }) => {
      const facts = { ...FACTS, quota: nanoUsd(300n), expiresAtMs: START_MS + DAY_MS, batch: "batch1" };
      return store.createCodes(facts, CODES, { label: "fair", count: CODES.length });
    },
  },
  ...["claim-note", "code-claim", "grant", "code-done", "claim-drop"].map(
    (script): Scene => ({ name: "a redemption", script, step: true, prepare: codes, act: redeem }),
  ),
  { name: "a code's end", script: "code-void", prepare: codes, act: ({ store }) => store.voidCode("code1") },
  {
    name: "the mark of a history",
    script: "epoch",
    prepare: async () => {},
    act: ({ store }) => store.countEpoch(0, undefined, "fresh"),
  },
];

/** A keyspace as lines `key field` -> value, without random parts. */
export type Keyspace = ReadonlyMap<string, string>;

const DUMP = `local out = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'hash' then
    local all = redis.call('HGETALL', key)
    for i = 1, #all, 2 do out[#out + 1] = { key, all[i], all[i + 1] } end
  elseif kind == 'zset' then
    local all = redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES')
    for i = 1, #all, 2 do out[#out + 1] = { key, all[i], all[i + 1] } end
  elseif kind == 'stream' then
    for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do
      out[#out + 1] = { key, entry[1], table.concat(entry[2], ' ') }
    end
  else
    out[#out + 1] = { key, '', redis.call('GET', key) .. ' until ' .. redis.call('PEXPIRETIME', key) }
  end
end
return cjson.encode(out)`;

/** The machinery on one Redis, for the scripts of one checkout. */
export interface Theatre {
  readonly stopper: ScriptStopper;
  /** Through the proxy, and directly. */
  readonly proxied: Stage;
  readonly direct: Stage;
  keyspace(): Promise<Keyspace>;
  /** Empties Redis and resets the clock. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** @param open opens the checkout's store on a Redis. */
export async function openTheatre(
  scripts: readonly StoppableScript[],
  open: (url: string) => Promise<Store>,
): Promise<Theatre> {
  const redis = await startRedis({ faketime: true });
  const clock = (afterMs: number) => redis.setTime(START_MS + afterMs);
  clock(0);
  const stopper = await startScriptStopper(redis.port, scripts);
  const [proxied, direct] = [await open(stopper.url), await open(redis.url)];
  return {
    stopper,
    proxied: { store: proxied, clock },
    direct: { store: direct, clock },
    async keyspace() {
      const lines = JSON.parse(await bulkReply(redis.port, ["EVAL", DUMP, "0"])) as [string, string, string][] | object;
      if (!Array.isArray(lines)) return new Map();
      const shown = lines.map(
        ([key, field, value]) => [`${key} ${field}`.trim(), field === "nonce" ? "" : value] as const,
      );
      return new Map(shown.sort(([a], [b]) => (a < b ? -1 : 1)));
    },
    async clear() {
      wanted = undefined;
      await redis.command("FLUSHALL");
      clock(0);
    },
    async close() {
      await Promise.all([proxied.close(), direct.close()]);
      await stopper.close();
      await redis.stop();
    },
  };
}

/** The text of a reply of any length. */
async function bulkReply(port: number, words: readonly string[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
  let bytes = Buffer.alloc(0);
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk as Buffer]);
    if (endOfMessage(bytes, 0) > 0) break;
  }
  socket.destroy();
  const text = bytes.toString();
  assert.ok(text.startsWith("$"), text);
  return text.slice(text.indexOf("\r\n") + 2, -2);
}

/** What one stop leaves, and what follows from it. */
export interface Stop {
  /** The command that did not run. */
  readonly at: string;
  readonly left: Keyspace;
  /** After a script that only finishes what it finds; undefined if the checkout has none. */
  readonly finished: Keyspace;
  /** After the repeated call, with nothing in between. */
  readonly repeated: Keyspace;
  readonly answer: unknown;
}

/** The states of a scene without a stop, and with each of its stops in turn. */
export interface Played {
  readonly before: Keyspace;
  /** The old state without its expired holds, which a script releases before everything else, as a separate change. */
  readonly swept: Keyspace;
  readonly after: Keyspace;
  readonly answer: unknown;
  readonly stops: readonly Stop[];
}

/** More commands than any script has. */
const COMMANDS_MAX = 200;

/** A settlement of an unknown request: it is stale, so the script only finishes what it finds. */
export function finishOthers({ store }: Stage): Promise<unknown> {
  return store.settle(charge(999, { amount: 0n, voided: true }, 0));
}

export async function play(theatre: Theatre, scene: Scene): Promise<Played> {
  const { direct } = theatre;
  await theatre.clear();
  await scene.prepare(direct);
  const before = await theatre.keyspace();
  await direct.store.extend({ tag: TAG, requestId: ridOf(999), target: nanoUsd(1n) });
  const swept = await theatre.keyspace();
  await theatre.clear();
  await scene.prepare(direct);
  const answer = await scene.act(direct);
  const after = await theatre.keyspace();
  const stops: Stop[] = [];
  for (let command = 1; command <= COMMANDS_MAX; command++) {
    const at = await stopOnce(theatre, scene, command);
    if (at === undefined) return { before, swept, after, answer, stops };
    const left = await theatre.keyspace();
    const again = await scene.act(theatre.proxied);
    const repeated = await theatre.keyspace();
    await stopOnce(theatre, scene, command);
    await finishOthers(theatre.proxied);
    const finished = await theatre.keyspace();
    stops.push({ at, left, finished, repeated, answer: again });
  }
  throw new Error(`${scene.name} does not end`);
}

/** @returns the command before which it stopped; undefined if the script has fewer commands. */
export async function stopOnce(theatre: Theatre, scene: Scene, command: number): Promise<string | undefined> {
  await theatre.clear();
  await scene.prepare(theatre.direct);
  theatre.stopper.stopAt(scene.script, command);
  const failed = await scene.act(theatre.proxied).then(
    () => false,
    () => true,
  );
  const at = theatre.stopper.goOn();
  assert.equal(failed, at !== undefined, `${scene.name}: it fails exactly when it was stopped`);
  return at;
}

/** Places in which two keyspaces differ. */
export function differences(a: Keyspace, b: Keyspace): string[] {
  const places = new Set([...a.keys(), ...b.keys()]);
  return [...places].filter((place) => a.get(place) !== b.get(place)).sort();
}
