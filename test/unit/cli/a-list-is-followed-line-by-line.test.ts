// `--follow` of the ledger and the audit: the last lines, then each new one once and in order, across a restart of the
// gateway, until it is interrupted.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import test, { type TestContext } from "node:test";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import { overlay } from "../../../src/store/overlay.ts";
import { Secret } from "../../../src/values/secret.ts";
import { refusingPort } from "../../rig/refusing-port.ts";
import { ADMIN_TOKEN, startConsole } from "../console/running-console.ts";
import { openTestStore } from "../console/test-store.ts";
import { type Ran, run, startGateway } from "./captured-run.ts";

/** A command with --follow, whose pauses the test ends one by one. */
class Followed {
  out = "";
  err = "";
  /** The current address of the gateway. */
  url: string;
  readonly done: Promise<Ran>;
  #goOn = () => {};
  #paused = Promise.withResolvers<void>();
  #stop = () => {};

  constructor(url: string, argv: readonly string[]) {
    this.url = url;
    this.done = run(argv, {
      env: { TOLLGATE_ADMIN_URL: "http://gateway.invalid", TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN },
      stdout: { write: (text) => (this.out += text) },
      stderr: { write: (text) => (this.err += text) },
      fetch: (input, init) => fetch(String(input).replace("http://gateway.invalid", this.url), init),
      wait: () => {
        this.#paused.resolve();
        return new Promise((resolve) => (this.#goOn = resolve));
      },
      onStop: (stop) => {
        this.#stop = stop;
        return () => {};
      },
    });
  }

  /** Resolves when the command has looked for lines and pauses. */
  async paused(): Promise<void> {
    await Promise.race([this.#paused.promise, this.done]);
  }

  /** Makes it look once more. */
  async look(): Promise<void> {
    this.#paused = Promise.withResolvers<void>();
    this.#goOn();
    await this.paused();
  }

  async interrupt(): Promise<number> {
    this.#stop();
    return (await this.done).status;
  }
}

async function twoRuns(t: TestContext) {
  const store = await openTestStore(t);
  return Promise.all([startConsole(t, { store }), startConsole(t, { store })]);
}

const LEDGER = ["ledger", "show", "--account", "alice", "--follow"];

/** The line numbers in each format. */
const FORMS = {
  table: (out: string) =>
    out
      .split("\n")
      .slice(1, -1)
      .map((line) => Number(line.trim().split(" ")[0])),
  csv: (out: string) =>
    out
      .split("\r\n")
      .slice(1, -1)
      .map((line) => Number(line.split(",")[0])),
  json: (out: string) =>
    out
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line).seq),
} as const;

for (const [format, seqs] of Object.entries(FORMS)) {
  test(`a ledger as ${format}: each line once, in order, across a restart of the gateway`, async (t) => {
    const [first, second] = await twoRuns(t);
    await first.ask("POST", "/admin/v1/accounts", { name: "alice" });
    let paid = 0;
    const pay = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const { status } = await second.ask("POST", "/admin/v1/accounts/alice/topups", {
          usd: "1.00",
          id: `pay_${++paid}`,
        });
        assert.equal(status, 201);
      }
    };
    await pay(12);
    const followed = new Followed(first.url, [...LEDGER, "--last", "3", "--format", format]);
    await followed.paused();
    assert.deepEqual(seqs(followed.out), [10, 11, 12], followed.err);
    await pay(1);
    await followed.look();
    await followed.look();
    assert.deepEqual(seqs(followed.out), [10, 11, 12, 13]);
    followed.url = `http://127.0.0.1:${await refusingPort(t)}`;
    await pay(300);
    await followed.look();
    await followed.look();
    assert.match(
      followed.err,
      /^No gateway answers at .*Retrying until it answers\.\n$/,
      "the message is printed once",
    );
    followed.url = second.url;
    await followed.look();
    assert.match(followed.err, /The gateway answers again\.\n$/);
    assert.deepEqual(
      seqs(followed.out),
      Array.from({ length: 304 }, (_, i) => 10 + i),
      "more than a page of them",
    );
    await followed.look();
    assert.equal(await followed.interrupt(), 0);
    assert.equal(seqs(followed.out).length, 304);
  });
}

test("a ledger is followed from its end, from a line, and from an instant", async (t) => {
  const { console: gateway } = await startGateway(t);
  const { ask } = gateway;
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const pay = (id: string) => ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id });
  const begin = async (...argv: string[]) => {
    const followed = new Followed(gateway.url, [...LEDGER, ...argv, "--format", "json"]);
    await followed.paused();
    return followed;
  };
  const empty = await begin();
  for (let i = 1; i <= 12; i++) await pay(`pay_${i}`);
  await empty.look();
  assert.deepEqual(
    FORMS.json(empty.out),
    Array.from({ length: 12 }, (_, i) => i + 1),
  );
  const all = [
    await begin(),
    await begin("--after", "10"),
    await begin("--since", "2099-01-01T00:00:00Z"),
    await begin("--since", "1h"),
  ];
  await pay("pay_13");
  for (const followed of all) await followed.look();
  assert.deepEqual(
    all.map(({ out }) => FORMS.json(out)),
    [Array.from({ length: 11 }, (_, i) => i + 3), [11, 12, 13], [13], Array.from({ length: 13 }, (_, i) => i + 1)],
  );
  for (const followed of [...all, empty]) assert.equal(await followed.interrupt(), 0);
});

test("following a ledger never continues with another account that takes over the name", async (t) => {
  const { console: gateway } = await startGateway(t);
  const { ask } = gateway;
  const pay = (id: string) => ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id });
  const { json: alice } = await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await pay("pay_1");
  const followed = new Followed(gateway.url, [...LEDGER, "--format", "json"]);
  await followed.paused();
  assert.equal((await ask("PUT", "/admin/v1/accounts/alice/name", { name: "bob" })).status, 200);
  assert.equal((await ask("POST", "/admin/v1/accounts", { name: "alice" })).status, 201);
  for (const id of ["pay_2", "pay_3"]) await pay(id);
  await followed.look();
  const { status } = await followed.done;
  assert.equal(status, 1);
  assert.match(
    followed.err,
    new RegExp(`alice is now the name of another account; the lines so far are of ${alice.id}`),
  );
  assert.deepEqual(FORMS.json(followed.out), [1]);
});

test("--follow retries while the store is unreachable or waits for its operator, and ends with a refusal", async (t) => {
  let away: StoreError | undefined;
  const real = await openTestStore(t);
  const findAccountName: Store["findAccountName"] = (name) =>
    away ? Promise.reject(away) : real.findAccountName(name);
  const gateway = await startConsole(t, { store: overlay(real, { findAccountName }) });
  const other = await startConsole(t, { store: real, adminToken: new Secret("another-token-for-tests-0123456789") });
  await gateway.ask("POST", "/admin/v1/accounts", { name: "alice" });
  const pay = (id: string) => gateway.ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id });
  await pay("pay_1");
  const followed = new Followed(gateway.url, [...LEDGER, "--format", "json"]);
  await followed.paused();
  for (const [at, kind] of (["unavailable", "older"] as const).entries()) {
    await pay(`away_${at}`);
    away = new StoreError(kind, "no");
    await followed.look();
    assert.equal(followed.err.match(/Retrying/g)?.length, at + 1, followed.err);
    assert.equal(FORMS.json(followed.out).length, at + 1);
    away = undefined;
    await followed.look();
    assert.deepEqual(FORMS.json(followed.out), [1, 2, 3].slice(0, at + 2));
  }
  followed.url = other.url;
  await followed.look();
  const ended = await Promise.race([followed.done, followed.paused()]);
  assert.equal(ended?.status, 1, "another token is needed, so waiting does not help");
  assert.match(followed.err, /Refused: /);
});

test("the audit: a restart resets its line numbers, and no line is printed twice", async (t) => {
  const [first, second] = await twoRuns(t);
  const make = (gateway: typeof first, name: string) => gateway.ask("POST", "/admin/v1/accounts", { name });
  for (const name of ["a1", "a2"]) await make(first, name);
  const followed = new Followed(first.url, ["audit", "--follow", "--json"]);
  await followed.paused();
  await make(first, "a3");
  await followed.look();
  followed.url = `http://127.0.0.1:${await refusingPort(t)}`;
  await followed.look();
  for (const name of ["b1", "b2", "b3", "b4"]) await make(second, name);
  followed.url = second.url;
  await followed.look();
  await make(second, "b5");
  await followed.look();
  // One address, answered by two gateways in turn.
  for (const [at, gateway] of [first, second, first, second].entries()) {
    followed.url = gateway.url;
    await make(gateway, `c${at}`);
    await followed.look();
  }
  assert.equal(await followed.interrupt(), 0);
  const targets = followed.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).target);
  assert.deepEqual(targets, ["a1", "a2", "a3", "b1", "b2", "b3", "b4", "b5", "c0", "c1", "c2", "c3"]);
  assert.equal(followed.err.match(/Another run/g)?.length, 1, "the message is printed once for each run");
  assert.match(followed.err, /^Another run of the gateway answers: .*\.\n/m);
  const table = new Followed(first.url, ["audit", "--follow", "--last", "1"]);
  await table.paused();
  await make(first, "a-much-longer-name");
  await table.look();
  assert.equal(await table.interrupt(), 0);
  assert.match(
    table.out,
    /^AT, UTC +WHO +WHAT HAPPENED +REQUEST\n.*create the account c2 .*\n.*account a-much-longer-name .*\n$/,
  );
});

test("the audit is read by its newest lines or back to an instant, over several pages", async (t) => {
  const { console: gateway, tollgate } = await startGateway(t);
  for (let i = 1; i <= 250; i++) await gateway.ask("POST", "/admin/v1/accounts", { name: `a${i}` });
  const seen = async (...argv: string[]) => {
    const { out } = await tollgate("audit", ...argv, "--format", "json");
    return JSON.parse(out).items.map(({ target }: { target: string }) => target);
  };
  assert.deepEqual(await seen("--last", "3"), ["a250", "a249", "a248"]);
  assert.equal((await seen("--last", "230")).length, 230);
  assert.equal((await seen("--last", "1000")).length, 250);
  assert.equal((await seen("--since", "1h", "--limit", "200")).length, 200);
  assert.deepEqual(await seen("--since", "2099-01-01T00:00:00Z"), []);
  const { out } = await tollgate("audit", "--since", "1h", "--format", "csv");
  assert.match(out, /^at,who,happened,request_id\r\n/);
  const behind = await gateway.ask("GET", "/admin/v1/audit?after=248");
  assert.deepEqual(
    behind.json.items.map(({ seq }: { seq: number }) => seq),
    [249, 250],
  );
  const elsewhere = await gateway.ask("GET", "/admin/v1/audit?after=248&run=000000000000&limit=2");
  assert.deepEqual(
    elsewhere.json.items.map(({ seq }: { seq: number }) => seq),
    [1, 2],
  );
  assert.equal(elsewhere.json.newest, 250);
  for (const wrong of [
    "after=1&cursor=2",
    "after=1&since=2026-01-01T00:00:00Z",
    "run=000000000000",
    "since=2026-02-30T00:00:00Z",
  ]) {
    assert.equal((await gateway.ask("GET", `/admin/v1/audit?${wrong}`)).status, 400, wrong);
  }
});

test("contradictory options are misuse, and an unknown account is a refusal", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  for (const wrong of [
    ["--limit", "3"],
    ["--before", "3"],
    ["--after", "3", "--last", "3"],
    ["--every", "soon"],
    ["--every", "1ms"],
  ]) {
    assert.equal((await tollgate(...LEDGER, ...wrong)).status, 2, wrong.join(" "));
  }
  for (const wrong of [
    ["--cursor", "3"],
    ["--last", "3", "--limit", "3"],
    ["--since", "soon"],
  ]) {
    assert.equal((await tollgate("audit", "--follow", ...wrong)).status, 2, wrong.join(" "));
  }
  const nobody = await tollgate("ledger", "show", "--account", "nobody", "--follow");
  assert.deepEqual([nobody.status, nobody.out], [1, ""]);
});

test("SIGINT ends the program with status 0", async (t) => {
  const { console: gateway, env, tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  await tollgate("topup", "--account", "alice", "--usd", "1", "--id", "pay_1");
  for (const argv of [
    [...LEDGER, "--every", "1h", "--format", "csv"],
    ["audit", "--follow", "--every", "1h", "--format", "csv"],
  ]) {
    const program = new URL("../../../src/main.ts", import.meta.url).pathname;
    const child = spawn(process.execPath, [program, ...argv], { env, stdio: ["ignore", "pipe", "inherit"] });
    // Its first lines are printed: it looks for more lines once and then pauses for an hour.
    await once(child.stdout, "data");
    child.kill("SIGINT");
    const [status, signal] = await once(child, "exit");
    assert.deepEqual([status, signal], [0, null], argv.join(" "));
  }
  assert.equal((await gateway.ask("GET", "/admin/v1/accounts/alice")).status, 200);
});
