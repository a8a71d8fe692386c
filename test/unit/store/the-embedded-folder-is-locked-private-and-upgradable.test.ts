// The embedded store's folder: used by one process, private, and durable.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { openDatabase } from "../../../src/store/embedded/database/open.ts";
import { SCHEMA_STEPS } from "../../../src/store/embedded/database/schema.ts";
import { openStore } from "../../../src/store/open.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { admitAsk, admitted, codeHashOf, makeAccount, ridOf, settleAsk, tagOf, terms } from "./asks.ts";

async function inFolder(work: (dir: string) => Promise<void>): Promise<void> {
  const parent = mkdtempSync(join(tmpdir(), "tollgate-folder-"));
  try {
    await work(join(parent, "data"));
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

/** Another process that opens the store in this folder and then runs `then`. */
function inAnotherProcess(dir: string, then: string): { status: number | null; stderr: string; signal: string | null } {
  const open = new URL("../../../src/store/open.ts", import.meta.url).href;
  const script = `import { openStore } from ${JSON.stringify(open)};
    const store = await openStore({ kind: "embedded", dir: ${JSON.stringify(dir)} });
    ${then}`;
  const { status, stderr, signal } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  return { status, stderr, signal };
}

test("a second process, or a second opening in this one, is refused while the folder is in use", () =>
  inFolder(async (dir) => {
    const store = await openStore({ kind: "embedded", dir });
    const second = inAnotherProcess(dir, "");
    assert.equal(second.status, 1);
    assert.ok(second.stderr.includes(`another process (${process.pid}) has the folder ${dir}; `), second.stderr);
    await assert.rejects(openStore({ kind: "embedded", dir }), (error) => {
      assert.ok(error instanceof StoreError);
      return error.message.startsWith(`this process (${process.pid}) has the folder ${dir}; `);
    });
    assert.equal(inAnotherProcess(dir, "").status, 1, "the lock outlives a second opening in this process");
    await store.close();
    await (await openStore({ kind: "embedded", dir })).close();
  }));

test("the error for a database that SQLite cannot open names the file and what to check", () =>
  inFolder(async (dir) => {
    await (await openStore({ kind: "embedded", dir })).close();
    // Like a full disk, which a test cannot make: a file next to the database cannot be created.
    rmSync(join(dir, "tollgate.db-wal"), { force: true });
    mkdirSync(join(dir, "tollgate.db-wal"));
    await assert.rejects(openStore({ kind: "embedded", dir }), (error) => {
      assert.ok(error instanceof StoreError);
      assert.ok(error.message.startsWith(`the embedded database ${join(dir, "tollgate.db")} cannot be opened (`));
      return error.message.endsWith(
        "check that file, the files next to it, and what the system reports about their disk (dmesg)",
      );
    });
  }));

test("a folder that cannot be created or written is refused at once, with the reason and the setting", () =>
  inFolder(async (dir) => {
    const file = join(dirname(dir), "file");
    writeFileSync(file, "");
    symlinkSync(join(dirname(dir), "nowhere", "else"), join(dirname(dir), "dangling"));
    const cases = [
      // For /proc the system reports that the parent folder is missing, although it exists.
      ["/proc/nope", "a parent of the folder does not exist and cannot be made (ENOENT)"],
      ["/proc/nope/deeper/data", "a parent of the folder does not exist and cannot be made (ENOENT)"],
      [join(file, "data"), "a part of the path is a file and not a folder (ENOTDIR)"],
      [file, "a part of the path is a file and not a folder (ENOTDIR)"],
      [join(dirname(dir), "dangling"), "a part of the path exists and is not a folder (EEXIST)"],
      [join(dir, "x".repeat(300)), "the path is too long (ENAMETOOLONG)"],
    ] as const;
    for (const [unusable, reason] of cases) {
      await assert.rejects(openStore({ kind: "embedded", dir: unusable }), {
        name: "StoreError",
        message: `the folder ${unusable} cannot be used: ${reason}; name another folder with the setting store (embedded:DIR), or give this user write access`,
      });
    }
    const deep = join(dir, "a", "b", "c");
    await (await openStore({ kind: "embedded", dir: deep })).close();
    for (const made of [dir, join(dir, "a"), deep]) assert.equal(statSync(made).mode & 0o777, 0o700);
  }));

test("kill -9 leaves no lock behind, and answered writes are kept (row A4)", () =>
  inFolder(async (dir) => {
    const killed = inAnotherProcess(
      dir,
      `await store.createAccount({ tag: "Killed0000", name: "Killed", plan: "free" });
       await store.credit("Killed0000", { id: "p", amount: 5n, kind: "topup", note: "" });
       process.kill(process.pid, "SIGKILL"); await new Promise(() => setInterval(() => {}, 1000));`,
    );
    assert.equal(killed.signal, "SIGKILL");
    const store = await openStore({ kind: "embedded", dir });
    assert.equal((await store.getAccount(tagOf("Killed")))?.balance, 5n);
    await store.close();
  }));

test("folder and files are private (0700, 0600)", () =>
  inFolder(async (dir) => {
    const store = await openStore({ kind: "embedded", dir });
    await makeAccount(store, "Modes");
    assert.equal(statSync(dir).mode & 0o777, 0o700);
    for (const file of readdirSync(dir)) assert.equal(statSync(join(dir, file)).mode & 0o777, 0o600, file);
    await store.close();
    // As a restored copy may have them.
    for (const file of readdirSync(dir)) chmodSync(join(dir, file), 0o644);
    await (await openStore({ kind: "embedded", dir })).close();
    for (const file of readdirSync(dir)) assert.equal(statSync(join(dir, file)).mode & 0o777, 0o600, file);
  }));

test("the error for a file that is not a database says what to restore, and the file is not changed", () =>
  inFolder(async (dir) => {
    await (await openStore({ kind: "embedded", dir })).close();
    const path = join(dir, "tollgate.db");
    const noise = "this is no database ".repeat(400);
    writeFileSync(path, noise);
    for (let again = 0; again < 2; again++) {
      await assert.rejects(openStore({ kind: "embedded", dir }), (error) => {
        assert.ok(error instanceof StoreError);
        assert.ok(error.message.startsWith(`the embedded database ${path} is damaged (file is not a database): `));
        assert.match(error.message, /restore a backup \(docs\/operation\.md/);
        return true;
      });
    }
    assert.equal(readFileSync(path, "utf8"), noise);
  }));

/** Undoes the schema steps after batches of codes. */
function undoLatestSteps(old: DatabaseSync): void {
  old.exec("DROP TABLE notices; DROP TABLE notice_queues; DROP TABLE notice_marks; DROP TABLE sign_ins;");
  old.exec("ALTER TABLE keys DROP COLUMN revisions;");
  for (const column of [
    "notify_below",
    "notify_revision",
    "status",
    "labels",
    "revision",
    "labels_revision",
    "name_revision",
  ])
    old.exec(`ALTER TABLE accounts DROP COLUMN ${column};`);
}

test("a folder of the version without codes is upgraded with everything in it", () =>
  inFolder(async (dir) => {
    let store = await openStore({ kind: "embedded", dir });
    const tag = await makeAccount(store, "Older", { funds: 7n });
    await store.close();
    const old = new DatabaseSync(join(dir, "tollgate.db"));
    undoLatestSteps(old);
    old.exec("DROP TABLE former_keys; DROP TABLE key_uses; DROP TABLE budgets;");
    old.exec("DROP TABLE codes; DROP TABLE code_batches; ALTER TABLE entitlements DROP COLUMN card;");
    old.exec("DROP TABLE identity; DROP TABLE idempotency; DROP TABLE epoch;");
    for (const column of ["plan_revision", "limits", "limits_revision"])
      old.exec(`ALTER TABLE accounts DROP COLUMN ${column};`);
    for (const column of ["name", "expires", "previous_until", "rotation", "limits", "caps"])
      old.exec(`ALTER TABLE keys DROP COLUMN ${column};`);
    for (const count of ["requests", "input", "cached_input", "cache_write", "output", "reasoning", "cost", "absorbed"])
      old.exec(`ALTER TABLE days DROP COLUMN ${count};`);
    old.exec("PRAGMA user_version = 1;");
    old.close();
    store = await openStore({ kind: "embedded", dir });
    const account = await store.getAccount(tag);
    assert.deepEqual([account?.balance, account?.status, account?.labels], [7n, "normal", {}]);
    assert.deepEqual((await store.listCodes(undefined, 10)).items, []);
    assert.deepEqual((await store.inspect(tag))?.notices, { taken: 0, last: 0, waiting: [], marks: {} });
    const [key] = await store.listKeys(tag);
    assert.deepEqual([key?.name, key?.status, key?.expiresAtMs], ["", "normal", undefined]);
    await store.close();
    const newer = new DatabaseSync(join(dir, "tollgate.db"));
    newer.exec("PRAGMA user_version = 99;");
    newer.close();
    await assert.rejects(openStore({ kind: "embedded", dir }), /newer Tollgate/);
  }));

test("an upgrade that stops half way has changed nothing, and the next start completes it", () =>
  inFolder(async (dir) => {
    let store = await openStore({ kind: "embedded", dir });
    const tag = await makeAccount(store, "Halfway", { funds: 7n });
    await store.close();
    const version = SCHEMA_STEPS.findIndex((step) => step.includes("sign_ins"));
    const file = join(dir, "tollgate.db");
    const old = new DatabaseSync(file);
    old.exec("DROP TABLE sign_ins; ALTER TABLE accounts DROP COLUMN labels_revision;");
    // `keys.revisions` still exists and stops the last step; the table of sign-ins is created by an earlier step.
    old.exec(`ALTER TABLE notice_marks DROP COLUMN latest; PRAGMA user_version = ${version};`);
    old.close();
    await assert.rejects(openStore({ kind: "embedded", dir }), /revisions/);
    const stopped = new DatabaseSync(file);
    assert.equal(stopped.prepare("PRAGMA user_version").get()?.user_version, version);
    assert.equal(stopped.prepare("SELECT name FROM sqlite_schema WHERE name = 'sign_ins'").get(), undefined);
    stopped.exec("ALTER TABLE keys DROP COLUMN revisions;");
    stopped.close();
    store = await openStore({ kind: "embedded", dir });
    assert.equal((await store.getAccount(tag))?.balance, 7n);
    await store.close();
  }));

test("a write waits a moment while another connection starts a checkpoint", () =>
  inFolder(async (dir) => {
    const db = openDatabase(dir);
    assert.equal(db.get("PRAGMA busy_timeout")?.timeout, 5n);
    db.close();
  }));

test("codes and cards of the version before batches still work", () =>
  inFolder(async (dir) => {
    let store = await openStore({ kind: "embedded", dir });
    const tag = await makeAccount(store, "Cards");
    const facts = { card: "day", plan: "pro", group: "cards", lastsMs: 60_000, quota: undefined } as const;
    const [spent, unused] = ["spent", "unused"].map((id) => ({ id, hash: codeHashOf(id) }));
    assert.ok(spent && unused);
    await store.createCodes({ ...facts, starts: "at_redemption" }, [spent, unused]);
    assert.equal((await store.redeem({ hash: spent.hash, tag })).outcome, "redeemed");
    await store.close();
    const old = new DatabaseSync(join(dir, "tollgate.db"));
    undoLatestSteps(old);
    old.exec("DROP TABLE code_batches; DROP INDEX codes_of_batch; ALTER TABLE entitlements DROP COLUMN card;");
    for (const column of ["batch", "expires"]) old.exec(`ALTER TABLE codes DROP COLUMN ${column};`);
    old.exec(`PRAGMA user_version = ${SCHEMA_STEPS.findIndex((step) => step.includes("code_batches"))};`);
    old.close();
    store = await openStore({ kind: "embedded", dir });
    const [card] = (await store.listCards(tag))?.cards ?? [];
    assert.deepEqual([card?.id, card?.card], ["spent", undefined]);
    const { batch, expiresAtMs } = (await store.getCode("unused")) ?? assert.fail();
    assert.deepEqual([batch, expiresAtMs], [undefined, undefined]);
    const redeemed = await store.redeem({ hash: unused.hash, tag });
    assert.equal(redeemed.outcome === "redeemed" && redeemed.entitlement.card, "day");
    await store.close();
  }));

test("after a restart money, keys and marks are kept, holds and buckets are gone, and a late charge counts once", () =>
  inFolder(async (dir) => {
    let store = await openStore({ kind: "embedded", dir });
    const tag = await makeAccount(store, "Restart", { funds: 100n });
    const groups = [terms({ requestsPerMinute: 2 })];
    const [done, open] = [1, 2].map((n) => admitAsk({ tag, requestId: ridOf(n), groups }));
    assert.ok(done && open);
    const permit = admitted(await store.admit(done));
    await store.settle(settleAsk(done, permit, { amount: 30n }));
    const orphan = admitted(await store.admit(open));
    await store.close();

    store = await openStore({ kind: "embedded", dir });
    const state = await store.inspect(tag);
    assert.ok(state);
    assert.deepEqual([state.account.balance, state.account.held, state.inFlight], [70n, 0n, 0]);
    assert.deepEqual([state.keys.length, state.buckets, state.settled], [1, {}, [ridOf(1)]]);
    assert.deepEqual(await store.settle(settleAsk(done, permit, { amount: 30n })), { outcome: "duplicate" });
    const late = settleAsk(open, orphan, { amount: 20n });
    assert.equal((await store.settle(late)).outcome, "settled");
    assert.equal((await store.settle(late)).outcome, "duplicate");
    assert.equal((await store.getAccount(tag))?.balance, 50n);
    await store.close();
    await assert.rejects(store.getAccount(tag), StoreError);
  }));

test("an account whose rows contradict the write is refused, and writes to other accounts succeed", async () => {
  await inFolder(async (dir) => {
    const store = await openStore({ kind: "embedded", dir });
    const [harmed, other] = [tagOf("One"), tagOf("Two")];
    for (const tag of [harmed, other]) {
      await store.createAccount({ tag, name: `of ${tag}`, plan: "free" });
      for (const id of ["one", "two"]) await store.credit(tag, { id, amount: nanoUsd(5n), kind: "topup", note: "" });
    }
    await store.close();
    const db = new DatabaseSync(join(dir, "tollgate.db"));
    db.prepare("UPDATE accounts SET seq = 1 WHERE tag = ?").run(harmed);
    db.close();
    const again = await openStore({ kind: "embedded", dir });
    const payment = { id: "three", amount: nanoUsd(5n), kind: "topup", note: "" } as const;
    await assert.rejects(again.credit(harmed, payment), (error: unknown) => {
      return error instanceof StoreError && error.outcome === "refused" && /UNIQUE/.test(error.message);
    });
    assert.equal((await again.credit(other, payment)).outcome, "credited");
    await again.close();
  });
});
