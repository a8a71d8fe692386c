/**
 * docs/failure-model.md rows B3 and B4 for commands that read whole ledgers: `tollgate ledger verify` works on a ledger
 * longer than one answer, in a database far larger than the account, in steps that delay no one else and with progress
 * for the person who watches. Only one scan goes through other keys of the database: that of `verify` through the
 * settled marks, and it goes in small steps.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import test, { type TestContext } from "node:test";
import { type Store, StoreError } from "../../../../src/store/contract.ts";
import { auditAccount } from "../../../../src/store/ledger/audit.ts";
import { overlay } from "../../../../src/store/overlay.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { newRequestId } from "../../../../src/values/request-id.ts";
import { type Clock, systemClock } from "../../../../src/values/time.ts";
import { type GatewayHere, PROGRAM, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { run } from "../../../unit/cli/captured-run.ts";
import { ADMIN_TOKEN, type RunningConsole, startConsole } from "../../../unit/console/running-console.ts";
import { openTestStore } from "../../../unit/console/test-store.ts";
import { makeAccount, settleAsk } from "../../../unit/store/asks.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { served } from "./rig.ts";

/** The escape sequence that erases a line of a terminal. */
const CLEAR = "\r\u001b[K";
const OTHER_KEYS = 1_000_000;
const LINES = 15_001;

/** Adds charges like the first one until the ledger has this many lines. */
async function fill(here: GatewayHere, account: TestAccount, lines: number): Promise<void> {
  await served(here, account);
  const [, line] = await here.store.readLedger(account.tag, 0, 2);
  assert.ok(line);
  const said = JSON.parse(line.memo) as Record<"cost" | "upstream" | "upstream_model", string> & Record<string, number>;
  const { input = 0, output = 0, upstream, upstream_model } = said;
  const tokens = { input, cachedInput: 0, cacheWrite: 0, output, reasoning: 0 };
  const permit = { storeTimeMs: Date.now(), group: line.group, keyId: account.keyId, entitlement: undefined };
  const { amount, memo, model } = line;
  const cost = { upstream, model: upstream_model, requests: 1, tokens, absorbed: nanoUsd(0n), charged: true };
  const costs = [{ ...cost, cost: nanoUsd(BigInt(said.cost)) }];
  const asks = Array.from({ length: lines - 2 }, () => {
    const requestId = newRequestId(Date.now(), randomBytes);
    return settleAsk({ tag: account.tag, requestId, groups: [] }, permit, { amount, memo, model, tokens, costs });
  });
  for (let at = 0; at < asks.length; at += 100) {
    await Promise.all(asks.slice(at, at + 100).map((ask) => here.store.settle(ask)));
  }
}

test("every command that reads a ledger works among a million other keys, and only verify scans them, once", async (t) => {
  const redis = await startRedis({ args: ["--appendonly", "yes", "--maxmemory-policy", "noeviction"] });
  t.after(() => redis.stop());
  const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
  t.after(() => here.close());
  const account = await here.account({ usd: "1000" });
  await fill(here, account, LINES);
  assert.match(await redis.command("DEBUG", "POPULATE", `${OTHER_KEYS}`, "other"), /^\+OK/);
  const env = { TOLLGATE_ADMIN_URL: here.adminUrl, TOLLGATE_ADMIN_TOKEN: "test-admin-token" };
  const ofAccount = ["--account", account.name];
  for (const [argv, words] of [
    [["ledger", "verify", ...ofAccount], /^Accounts verified: 1; out of balance: 0\.$/m],
    [["ledger", "verify"], /^Accounts verified: 1; out of balance: 0\.$/m],
    [["ledger", "show", ...ofAccount, "--format", "csv"], new RegExp(`^${LINES},`, "m")],
    [["ledger", "show", ...ofAccount, "--format", "json"], new RegExp(`"seq":${LINES},`)],
    [["usage", ...ofAccount], new RegExp(` ${LINES - 1} `)],
  ] as const) {
    await redis.command("CONFIG", "RESETSTAT");
    const ran = await run(argv, { env });
    assert.deepEqual([ran.status, ran.err], [0, ""], argv.join(" "));
    assert.match(ran.out, words);
    const stats = await redis.command("INFO", "commandstats");
    assert.match(stats, /cmdstat_hget/);
    assert.doesNotMatch(stats, /cmdstat_keys\b/);
    const scans = Number(/cmdstat_scan:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    // A thousand keys per step, or a few more.
    const most = (2 * (OTHER_KEYS + LINES)) / 1_000;
    assert.ok(argv[1] === "verify" ? scans > 500 && scans <= most : scans === 0, `${argv.join(" ")}: ${scans} scans`);
  }
});

test("no step of an audit asks the store for more than a bounded amount", async (t) => {
  const store = await openTestStore(t);
  const tag = await makeAccount(store, "Steps", { funds: 100_000n });
  for (let at = 0; at < 900; at++) await store.credit(tag, { id: `p${at}`, amount: 1n, kind: "topup", note: "" });
  const counts: number[] = [];
  const counted = overlay(store, {
    async readLedger(...ask) {
      const lines = await store.readLedger(...ask);
      counts.push(lines.length);
      return lines;
    },
    async readFigures(of, ask) {
      counts.push(Math.max(0, ...Object.values(ask).map((names) => (Array.isArray(names) ? names.length : 0))));
      return store.readFigures(of, ask);
    },
    inspect: () => assert.fail("the whole account is not read"),
  });
  let steps = 0;
  for await (const { lines, linesMax } of auditAccount(counted, { name: "Steps", tag })) {
    assert.ok(linesMax === undefined || lines <= linesMax);
    steps += 1;
  }
  assert.ok(steps >= 900 / 100 && Math.max(...counts) <= 100, `${steps} steps, ${Math.max(...counts)}`);
});

/** A clock that moves each time it is read, so that answers end in the middle of an account. */
function busyClock(msPerLook: number): Clock {
  let nowMs = 0;
  return { ...systemClock, monotonicMs: () => (nowMs += msPerLook) };
}

interface Scene {
  readonly console: RunningConsole;
  readonly store: Store;
  tollgate(...argv: string[]): ReturnType<typeof run>;
  /** The delays between attempts, and what a person at a terminal saw. */
  readonly waits: number[];
  readonly seen: string[];
}

/** A console whose answers end after a few steps, over a store with an account of 900 lines and two small ones. */
async function scene(t: TestContext, failing: (store: Store) => Store = (store) => store, clock = busyClock(150)) {
  const store = await openTestStore(t);
  const tag = await makeAccount(store, "large", { funds: 100_000n });
  for (let at = 1; at < 900; at++) await store.credit(tag, { id: `p${at}`, amount: 1n, kind: "topup", note: "" });
  await makeAccount(store, "asmall");
  await makeAccount(store, "small");
  const console = await startConsole(t, { store: failing(store), clock });
  const [waits, seen]: [number[], string[]] = [[], []];
  const env = { TOLLGATE_ADMIN_URL: console.url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const stderr = { isTTY: true, columns: 200, write: (text: string) => seen.push(text) };
  const wait = async (ms: number) => void waits.push(ms);
  const here: Scene = { console, store, waits, seen, tollgate: (...argv) => run(argv, { env, stderr, wait }) };
  return here;
}

test("an answer ends after a second and the next one continues, in the middle of an account", async (t) => {
  const { console } = await scene(t);
  const items: string[] = [];
  const places: string[] = [];
  let cursor = "";
  let answers = 0;
  do {
    const { status, json } = await console.ask("GET", `/admin/v1/ledger/verification?limit=200${cursor}`);
    assert.equal(status, 200);
    assert.equal(json.restarted, false);
    items.push(...json.items.map((item: { account: string; outcome: string }) => `${item.account} ${item.outcome}`));
    if (json.progress) {
      assert.deepEqual([json.progress.account.length > 0, json.next === null], [true, false]);
      places.push(`${json.progress.account} ${json.progress.lines} of ${json.progress.lines_total}`);
    }
    cursor = json.next === null ? "" : `&cursor=${json.next}`;
    answers += 1;
  } while (cursor !== "");
  assert.deepEqual(items, ["asmall balanced", "large balanced", "small balanced"]);
  assert.ok(answers > 5, `${answers}`);
  const inLarge = places.filter((place) => /^large [1-9]/.test(place));
  assert.ok(inLarge.length > 1 && inLarge.every((place) => place.endsWith(" of 900")), `${places}`);
});

test("a person at a terminal sees the progress, and nothing of it is left at the end or in the output", async (t) => {
  const { tollgate, seen } = await scene(t);
  const ran = await tollgate("ledger", "verify");
  assert.equal(ran.status, 0, seen.join(""));
  assert.equal(ran.out, "Accounts verified: 3; out of balance: 0.\n");
  const shown = seen.join("");
  assert.match(shown, /Accounts verified: 1; large: line [1-9]\d* of 900/);
  assert.ok(shown.startsWith(CLEAR) && shown.endsWith(CLEAR), JSON.stringify(shown.slice(-40)));
  const one = await tollgate("--json", "ledger", "verify", "--account", "large");
  assert.equal(JSON.parse(one.out).items[0].lines, 900);
});

test("an audit that the gateway has forgotten restarts, but not endlessly", async (t) => {
  const { console, store } = await scene(t);
  const first = await console.ask("GET", "/admin/v1/ledger/verification?account=large");
  assert.ok(first.json.progress, "the audit stops before its end");
  const [place] = [JSON.parse(Buffer.from(first.json.next, "base64url").toString())];
  const unknown = Buffer.from(JSON.stringify([place[0], "0".repeat(24)])).toString("base64url");
  const again = await console.ask("GET", `/admin/v1/ledger/verification?account=large&cursor=${unknown}`);
  assert.deepEqual([again.status, again.json.restarted], [200, true]);
  for (const cursor of ["x", "WyJhIl0", Buffer.from('["a",1]').toString("base64url")]) {
    const refused = await console.ask("GET", `/admin/v1/ledger/verification?cursor=${cursor}`);
    assert.deepEqual([refused.status, refused.json.error.code], [400, "malformed"], cursor);
  }
  // Two gateways in turn; each forgets what the other has started.
  const other = await startConsole(t, { store, clock: busyClock(150) });
  let asked = 0;
  const inTurn: typeof fetch = (input, init) =>
    fetch(asked++ % 2 === 0 ? input : String(input).replace(console.url, other.url), init);
  const env = { TOLLGATE_ADMIN_URL: console.url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const ran = await run(["ledger", "verify", "--account", "large"], { env, fetch: inTurn });
  assert.equal(ran.status, 1);
  assert.match(ran.err, /^The gateway lost its progress with the account large 4 times\.\nUse one gateway/);
});

/** A store that does not answer the calls with these numbers. @param read after which lines the other calls read. */
function awayAt(from: number, to: number, read: number[] = []): (store: Store) => Store {
  let calls = 0;
  const gone = () => new StoreError("unavailable", "away");
  return (store) =>
    overlay(store, {
      async readLedger(...ask) {
        calls += 1;
        if (calls >= from && calls < to) throw gone();
        read.push(ask[1]);
        return store.readLedger(...ask);
      },
    });
}

test("if the store becomes unreachable in the middle, the command waits and continues where it was", async (t) => {
  const read: number[] = [];
  const { tollgate, waits, seen } = await scene(t, awayAt(3, 8, read));
  const ran = await tollgate("ledger", "verify", "--account", "large");
  assert.equal(ran.status, 0, seen.join(""));
  assert.deepEqual(waits, [1_000, 1_000, 1_000, 1_000, 1_000]);
  const shown = seen.join("");
  assert.match(shown, /The store does not answer; retrying for up to a minute\.\n/);
  assert.deepEqual(
    read,
    Array.from({ length: 900 / 50 }, (_, page) => 50 * page),
    "no line is read twice",
  );
  assert.match(ran.out, /large +balanced +900 /);
});

test("if the store stays unreachable, the command ends after a minute and gives the reason", async (t) => {
  const { tollgate, waits, seen } = await scene(t, awayAt(3, 1e9));
  const ran = await tollgate("ledger", "verify");
  assert.deepEqual([ran.status, ran.out, waits.length], [1, "", 60]);
  assert.match(
    seen.join(""),
    /Refused: The store did not answer\.\nRepeat the request\.\nIt did not answer for 60 seconds\.\n$/,
  );
});

test("an export whose store becomes unreachable says where it ends and how to continue", async (t) => {
  const { tollgate, seen } = await scene(t, awayAt(6, 1e9));
  const ran = await tollgate("ledger", "show", "--account", "large", "--format", "csv");
  assert.equal(ran.status, 1);
  const lines = ran.out.trimEnd().split("\r\n");
  const last = lines.at(-1)?.split(",")[0];
  assert.ok(Number(last) >= 250, `${last}`);
  assert.match(
    seen.join(""),
    new RegExp(`The output is incomplete: it ends with line ${last}\\. To continue, use --after ${last}\n$`),
  );
  const json = await tollgate("ledger", "show", "--account", "nobody", "--format", "json");
  assert.deepEqual([json.status, json.out], [1, ""]);
});

test("without accounts there is nothing to verify, and wrong options are exit status 2", async (t) => {
  const { tollgate } = await (async () => {
    const console = await startConsole(t);
    const env = { TOLLGATE_ADMIN_URL: console.url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
    return { tollgate: (...argv: string[]) => run(argv, { env }) };
  })();
  const none = await tollgate("ledger", "verify");
  assert.deepEqual([none.status, none.out], [0, "Accounts verified: 0; out of balance: 0.\n"]);
  const json = await tollgate("--json", "ledger", "verify");
  assert.deepEqual(JSON.parse(json.out), { accounts: 0, unbalanced: 0, items: [] });
  assert.equal((await tollgate("ledger", "verify", "--acount", "x")).status, 2);
  assert.equal((await tollgate("ledger", "verify", "--account", "..")).status, 1);
});

/** The program itself, as a process. */
function program(url: string, ...argv: string[]): ChildProcess {
  const env = { ...process.env, TOLLGATE_ADMIN_URL: url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  return spawn(process.execPath, [PROGRAM, ...argv], { env, stdio: ["ignore", "pipe", "pipe"] });
}

async function heard(
  child: ChildProcess,
): Promise<{ out: string; err: string; code: number | null; signal: string | null }> {
  let [out, err] = ["", ""];
  child.stdout?.on("data", (chunk) => (out += chunk));
  child.stderr?.on("data", (chunk) => (err += chunk));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  return { out, err, code, signal };
}

test("Ctrl-C ends the command as a signal does, with a note that nothing was changed, and does no harm", async (t) => {
  const asked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { console } = await scene(t, (store) =>
    overlay(store, {
      async readLedger(...ask) {
        asked.resolve();
        await release.promise;
        return store.readLedger(...ask);
      },
    }),
  );
  const child = program(console.url, "ledger", "verify");
  const ended = heard(child);
  await asked.promise;
  child.kill("SIGINT");
  const { out, err, code, signal } = await ended;
  assert.deepEqual([out, code, signal], ["", null, "SIGINT"]);
  assert.equal(err, "Interrupted; nothing was changed.\n");
  release.resolve();
  const after = await console.ask("GET", "/admin/v1/ledger/verification?account=small");
  assert.equal(after.status, 200);
});

test("an export ends silently when its reader closes the pipe", async (t) => {
  const { console } = await scene(t);
  const child = program(console.url, "ledger", "show", "--account", "large", "--format", "csv");
  child.stdout?.once("data", () => child.stdout?.destroy());
  const { err, code } = await heard(child);
  assert.deepEqual([err, code], ["", 0]);
});
