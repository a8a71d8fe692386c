/**
 * `tollgate ledger archive` as finance sees it: lines move into files, the balance at every moment is the opening line
 * plus the lines after it, and an interruption at any step neither loses nor duplicates lines.
 */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { type TestContext } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { digestOf } from "../../../../src/store/ledger/plain-line.ts";
import type { LedgerLine } from "../../../../src/store/records.ts";
import { hashKey } from "../../../../src/values/key.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { utcDay } from "../../../../src/values/time.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { type Ran, run } from "../../../unit/cli/captured-run.ts";
import { admitAsk, admitted, ridOf, settleAsk, terms } from "../../../unit/store/asks.ts";
import { served } from "./rig.ts";

const DAY_MS = 86_400_000;
const ADMIN = { TOLLGATE_ADMIN_TOKEN: "test-admin-token" };

interface Bench {
  readonly here: GatewayHere;
  readonly account: TestAccount;
  readonly dir: string;
  /** The first UTC day after the account's old lines. */
  readonly before: string;
  tollgate(...argv: string[]): Promise<Ran>;
  /** The same, over a connection that is lost after this many requests. */
  cutAfter(calls: number, ...argv: string[]): Promise<Ran>;
}

/** An account with `lines` old lines, including a card and charges, and two recent ones after them. */
async function bench(t: TestContext, lines = 12): Promise<Bench> {
  const here = await startGatewayHere();
  const dir = join(mkdtempSync(join(tmpdir(), "tollgate-archive-")), "files");
  t.after(async () => {
    await here.close();
    rmSync(join(dir, ".."), { recursive: true, force: true });
  });
  const account = await here.account({ usd: "1" });
  const card = { id: "code_1", card: "day", plan: "pro", group: "cards", lastsMs: 30 * DAY_MS, afterPrevious: false };
  await here.store.grant(account.tag, { ...card, quota: nanoUsd(5_000n), reference: "code_1" });
  await served(here, account);
  for (let at = 3; at < lines; at++) {
    await here.store.credit(account.tag, { id: `pay-${at}`, amount: 1n, kind: "topup", note: 'a "note" äö' });
  }
  age(here, account);
  const before = utcDay(Date.now() - 5 * DAY_MS);
  await here.store.credit(account.tag, { id: "young-1", amount: 7n, kind: "topup", note: "" });
  await here.store.credit(account.tag, { id: "young-2", amount: -2n, kind: "adjust", note: "n" });
  const env = { ...ADMIN, TOLLGATE_ADMIN_URL: here.adminUrl };
  return {
    ...{ here, account, dir, before },
    tollgate: (...argv) => run(argv, { env }),
    cutAfter(calls, ...argv) {
      let left = calls;
      const cut: typeof fetch = async (...args) => {
        if (left === 0) throw new Error("cut off");
        left -= 1;
        return fetch(...args);
      };
      return run(argv, { env, fetch: cut });
    },
  };
}

/** Makes the ledger lines up to this number ten days older: the embedded store uses the machine's clock. */
function age(here: GatewayHere, { tag }: TestAccount, last = 1_000_000): void {
  assert.ok(here.settings.store.kind === "embedded");
  const db = new DatabaseSync(join(here.settings.store.dir, "tollgate.db"));
  db.prepare("UPDATE ledger SET at = at - ? WHERE tag = ? AND seq <= ?").run(10 * DAY_MS, tag, last);
  db.close();
}

/** Writes two lines of one request, the fifteenth and the sixteenth of a bench: a charge, and what was absorbed. */
async function chargeAndAbsorb({ here, account }: Bench): Promise<void> {
  const ask = admitAsk({
    ...{ tag: account.tag, requestId: ridOf(1), keyHash: hashKey(account.key), plans: ["pro"] },
    groups: [terms({ group: "money" })],
  });
  const answer = admitted(await here.store.admit(ask));
  await here.store.settle(settleAsk(ask, answer, { amount: 5n, absorbed: 3n, absorbedCause: "cut_over_hold" }));
}

const filesOf = (dir: string) => readdirSync(dir).sort();
const linesIn = (dir: string) =>
  filesOf(dir).flatMap((name) => {
    const [, ...lines] = gunzipSync(readFileSync(join(dir, name)))
      .toString()
      .trimEnd()
      .split("\n");
    return lines.map((line) => JSON.parse(line).seq as number);
  });
const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);
const shown = (lines: readonly LedgerLine[]) => lines.map(({ seq, kind }) => `${seq} ${kind}`);

test("old lines are in files, the ledger begins with an opening line, and both are verified from the first line on", async (t) => {
  const { here, account, dir, before, tollgate } = await bench(t);
  const balance = (await here.store.getAccount(account.tag))?.balance ?? 0n;
  const all = await here.store.readLedger(account.tag, 0, 100);
  const ran = await tollgate("ledger", "archive", "--before", before, "--to", dir);
  assert.equal(ran.status, 0, ran.err);
  assert.match(ran.out, new RegExp(`^${account.name} +12 +1 +12$`, "m"));
  assert.deepEqual(filesOf(dir), [`acct_${account.tag}.000000000001-000000000012.ndjson.gz`]);
  assert.deepEqual(
    [statSync(dir).mode & 0o777, statSync(join(dir, filesOf(dir)[0] ?? "")).mode & 0o777],
    [0o700, 0o600],
  );
  assert.deepEqual(linesIn(dir), upTo(12));
  const left = await here.store.readLedger(account.tag, 0, 100);
  assert.deepEqual(shown(left), ["12 opening", "13 topup", "14 adjust"]);
  assert.equal((left[0]?.amount ?? 0n) + 7n - 2n, balance);
  assert.deepEqual(left.slice(1), all.slice(12));

  const page = await tollgate("ledger", "show", "--account", account.name);
  assert.match(page.out, /^ *12 .* opening .* lines 1 to 12 are archived, from \d{4}-\d\d-\d\dT\S+ on$/m);
  for (const argv of [
    ["ledger", "verify"],
    ["ledger", "verify", "--account", account.name],
  ]) {
    const plain = await tollgate(...argv);
    assert.equal(plain.status, 0, plain.err);
    const through = await tollgate(...argv, "--archive", dir);
    assert.equal(through.status, 0, through.err);
    assert.match(through.out, /out of balance: 0\. Lines verified in the archive: 12\.\n$/);
  }
  const again = await tollgate("ledger", "archive", "--before", before, "--to", dir);
  const nothing = `Lines archived: 0, from before ${before}; no file or folder was created.\n`;
  assert.deepEqual([again.status, again.out], [0, nothing], again.err);
  const elsewhere = await tollgate("ledger", "archive", "--before", before, "--to", join(dir, "..", "other"));
  assert.deepEqual([elsewhere.status, elsewhere.out], [0, nothing], elsewhere.err);
  assert.deepEqual(readdirSync(join(dir, "..")), ["files"]);
  assert.equal((await here.store.getAccount(account.tag))?.balance, balance);
});

test("a run that is interrupted after any of its requests loses and duplicates nothing, and the next run finishes", async (t) => {
  const { here, account, dir, before, tollgate, cutAfter } = await bench(t, 2_300);
  const balance = (await here.store.getAccount(account.tag))?.balance ?? 0n;
  // The first runs end before there is a file; without the folder a verification would be an error.
  mkdirSync(dir);
  let cuts = 0;
  for (let calls = 0; ; calls++) {
    assert.ok(calls < 40, "it does not finish");
    const ran = await cutAfter(calls, "ledger", "archive", "--before", before, "--to", dir, "--account", account.name);
    const verified = await tollgate("ledger", "verify", "--account", account.name, "--archive", dir);
    assert.equal(verified.status, 0, `${calls} requests: ${verified.err}`);
    assert.equal((await here.store.getAccount(account.tag))?.balance, balance);
    if (ran.status === 0) break;
    cuts += 1;
  }
  assert.ok(cuts >= 5, `${cuts}`);
  assert.deepEqual(linesIn(dir), upTo(2_300));
  assert.deepEqual(shown(await here.store.readLedger(account.tag, 0, 9)), [
    "2300 opening",
    "2301 topup",
    "2302 adjust",
  ]);
});

test("a later run continues in another file, and the chain goes through both files", async (t) => {
  const { here, account, dir, before, tollgate } = await bench(t);
  const archive = (day: string) => tollgate("ledger", "archive", "--before", day, "--to", dir);
  assert.equal((await archive(before)).status, 0);
  const young = await archive(utcDay(Date.now() - 3 * DAY_MS));
  assert.deepEqual([young.status, /younger than 96 hours/.test(young.err)], [1, true], young.err);
  age(here, account);
  await served(here, account);
  assert.equal((await archive(before)).status, 0);
  assert.deepEqual(filesOf(dir).length, 2);
  assert.deepEqual(linesIn(dir), upTo(14));
  assert.deepEqual(shown(await here.store.readLedger(account.tag, 0, 9)), ["14 opening", "15 usage"]);
  const verified = await tollgate("ledger", "verify", "--archive", dir);
  assert.equal(verified.status, 0, verified.err);
});

test("a file ends before a request that has one old and one recent line", async (t) => {
  const one = await bench(t);
  const { here, account, dir, before, tollgate } = one;
  await chargeAndAbsorb(one);
  age(here, account, 15);
  const ran = await tollgate("ledger", "archive", "--before", before, "--to", dir);
  assert.equal(ran.status, 0, ran.err);
  assert.deepEqual(linesIn(dir), upTo(14));
  assert.deepEqual(shown(await here.store.readLedger(account.tag, 0, 9)), ["14 opening", "15 usage", "16 absorbed"]);
});

test("with a file left by an interrupted run, a run for an earlier day removes only the lines before that day", async (t) => {
  const { here, account, dir, before, tollgate, cutAfter } = await bench(t);
  age(here, account, 8);
  // The file is written by then; the store has not been asked yet.
  const cut = await cutAfter(3, "ledger", "archive", "--before", before, "--to", dir, "--account", account.name);
  assert.deepEqual([cut.status, linesIn(dir)], [1, upTo(12)], cut.err);
  const earlier = await tollgate("ledger", "archive", "--before", utcDay(Date.now() - 15 * DAY_MS), "--to", dir);
  assert.equal(earlier.status, 0, earlier.err);
  assert.equal((await here.store.readLedger(account.tag, 0, 1))[0]?.seq, 8);
  const later = await tollgate("ledger", "archive", "--before", before, "--to", dir);
  assert.equal(later.status, 0, later.err);
  assert.deepEqual(shown(await here.store.readLedger(account.tag, 0, 9)), ["12 opening", "13 topup", "14 adjust"]);
});

test("nor does it remove a part of a request that has one line before that day and one after it", async (t) => {
  const one = await bench(t);
  const { here, account, dir, before, cutAfter, tollgate } = one;
  await chargeAndAbsorb(one);
  age(here, account);
  age(here, account, 15);
  const cut = await cutAfter(3, "ledger", "archive", "--before", before, "--to", dir, "--account", account.name);
  assert.deepEqual([cut.status, linesIn(dir)], [1, upTo(16)], cut.err);
  const earlier = await tollgate("ledger", "archive", "--before", utcDay(Date.now() - 15 * DAY_MS), "--to", dir);
  assert.equal(earlier.status, 0, earlier.err);
  assert.deepEqual(shown(await here.store.readLedger(account.tag, 0, 9)), ["14 opening", "15 usage", "16 absorbed"]);
});

test("a damaged archive or a wrong option is reported, and no line is removed", async (t) => {
  const { here, account, dir, before, tollgate, cutAfter } = await bench(t);
  assert.equal((await tollgate("ledger", "archive", "--before", "soon", "--to", dir)).status, 2);
  await cutAfter(3, "ledger", "archive", "--before", before, "--to", dir, "--account", account.name);
  const [name = ""] = filesOf(dir);
  const file = join(dir, name);
  const good = readFileSync(file);
  const doctored = gunzipSync(good).toString().replace('"amount":"1"', '"amount":"2"');
  writeFileSync(file, gzipSync(doctored));
  const ran = await tollgate("ledger", "archive", "--before", before, "--to", dir);
  assert.deepEqual([ran.status, /cannot be used: it was changed/.test(ran.err)], [1, true], ran.err);
  assert.equal((await here.store.readLedger(account.tag, 0, 100)).length, 14);
  writeFileSync(file, good.subarray(0, good.length - 9));
  const torn = await tollgate("ledger", "archive", "--before", before, "--to", dir);
  assert.deepEqual([torn.status, /cannot be used/.test(torn.err)], [1, true], torn.err);
  writeFileSync(file, good);
  assert.equal((await tollgate("ledger", "archive", "--before", before, "--to", dir)).status, 0);
  writeFileSync(file, gzipSync(doctored));
  const found = await tollgate("ledger", "verify", "--archive", dir);
  assert.equal(found.status, 1);
  assert.match(found.err, /line_balance: In the archive: .*balance/);
  assert.match(found.out, /out of balance: 1\. /);
  rmSync(file);
  const missing = await tollgate("ledger", "verify", "--archive", dir);
  assert.match(missing.err, /Lines 1 to 12 are neither in the files nor in the store\./);
  assert.equal((await tollgate("ledger", "verify")).status, 0);
});

/** The admin API's answer to this step of an archive. */
async function archiveStep({ here, account }: Bench, body: object): Promise<string> {
  const reply = await fetch(`${here.adminUrl}/admin/v1/accounts/${account.name}/ledger/archive`, {
    method: "POST",
    headers: { authorization: "Bearer test-admin-token", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return `${reply.status} ${((await reply.json()) as { error?: { code: string } }).error?.code}`;
}

test("a day that does not exist is refused before a file is written", async (t) => {
  const { tollgate, dir } = await bench(t);
  for (const before of ["2026-02-30", "2025-02-29", "2026-04-31", "2026-13-01", "2026-1-1"]) {
    const ran = await tollgate("ledger", "archive", "--before", before, "--to", dir);
    assert.deepEqual([ran.status, ran.err], [2, "--before must be a UTC day, YYYY-MM-DD.\n"], before);
  }
  assert.equal(existsSync(dir), false);
});

test("a folder without a name is refused before a file is written", async (t) => {
  const { here, account, before, tollgate } = await bench(t);
  const ran = await tollgate("ledger", "archive", "--before", before, "--to", "");
  assert.deepEqual([ran.status, /--to .* must name a file or a folder/.test(ran.err)], [2, true], ran.err);
  assert.deepEqual(
    readdirSync(".").filter((name) => name.startsWith("acct_")),
    [],
  );
  assert.equal((await here.store.readLedger(account.tag, 0, 100)).length, 14);
});

test("a charge and the absorbed line of its request stay together", async (t) => {
  const one = await bench(t);
  const { here, account, before } = one;
  await chargeAndAbsorb(one);
  age(here, account);
  const lines = await here.store.readLedger(account.tag, 0, 100);
  assert.deepEqual(shown(lines.slice(-2)), ["15 usage", "16 absorbed"]);
  const step = (through: number) =>
    archiveStep(one, { before, after: 0, through, sha256: digestOf(lines.slice(0, through)) });
  assert.equal(await step(15), "409 splits_a_request");
  assert.equal((await here.store.readLedger(account.tag, 0, 100)).length, 16);
  assert.equal(await step(14), "201 undefined");
});

test("the admin API removes nothing if the caller does not know its digest", async (t) => {
  const one = await bench(t);
  const { here, account, before } = one;
  const post = (body: object) => archiveStep(one, body);
  const sha256 = "0".repeat(64);
  assert.equal(await post({ before, after: 0, through: 5, sha256 }), "409 not_the_same_lines");
  assert.equal(await post({ before, after: 3, through: 5, sha256 }), "409 moved");
  assert.equal(await post({ before, after: 0, through: 5_000, sha256 }), "400 malformed");
  assert.equal(await post({ before: "2026-02-30", after: 0, through: 5, sha256 }), "400 malformed");
  const all = await here.store.readLedger(account.tag, 0, 100);
  const younger = { before, after: 0, through: 13, sha256: digestOf(all.slice(0, 13)) };
  assert.equal(await post(younger), "409 not_before", "only the last line is too recent");
  assert.equal(await post({ before: "2999-01-01", after: 0, through: 5, sha256 }), "409 too_young");
  assert.equal(await post({ before, after: 0, through: 5 }), "400 missing_member");
  assert.equal((await here.store.readLedger(account.tag, 0, 100)).length, 14);
});
