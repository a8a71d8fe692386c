import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import type { StoreAnswer } from "../../../src/console/answers/answers.ts";
import { COMMAND } from "../../../src/values/program/program.ts";
import { BARE_ENV, PROGRAM } from "../../rig/gateway.ts";
import { refusingPort } from "../../rig/refusing-port.ts";
import { ADMIN_TOKEN } from "../console/running-console.ts";
import { run, startGateway } from "./captured-run.ts";

async function folder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-cli-"));
  t.after(() => rm(dir, { recursive: true }));
  return dir;
}

/** A server that gives the same answer to everything. */
async function answering(t: TestContext, status: number, body: string, headers: Record<string, string> = {}) {
  const server = createServer((_request, response) => response.writeHead(status, headers).end(body));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("malformed amounts are refused with the reason and the remedy", async (t) => {
  const { tollgate, console } = await startGateway(t);
  await tollgate("account", "create", "alice");
  for (const usd of ["-5", "0", "1e3", "NaN", "0x10", " 12 ", "99999999999999999999", "9007199254740993", ""]) {
    const ran = await tollgate("topup", "--account", "alice", "--usd", usd, "--id", "pay_1");
    assert.equal(ran.status, 1, usd);
    assert.equal(ran.out, "");
    assert.match(ran.err, /^Refused: --usd must be an amount above 0/);
    assert.match(ran.err, /10\.00/);
  }
  assert.equal((await console.store.findAccount("alice"))?.balance, 0n);
});

test("unknown names, used ids and uncovered adjustments are refused", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  await tollgate("topup", "--account", "alice", "--usd", "1", "--id", "pay_1");
  const refusals: [argv: string[], reason: RegExp][] = [
    [["account", "create", "alice", "--plan", "pro"], /exists with the plan `free`/],
    [["account", "create", "bob", "--plan", "por"], /Did you mean `pro`/],
    [["account", "show", "nobody"], /no account named `nobody`/],
    [["account", "show", "a/../b"], /^Refused: <name> must be/],
    [["key", "revoke", "x"], /^Refused: <key-id> must be the id of a key/],
    [["account", "list", "--limit", "999"], /^Refused: --limit must be/],
    [["account", "rename", "a/../b", "bob"], /^Refused: <name> must be/],
    [["key", "create", "--account", "alice", "--group", "bigg"], /Did you mean `big`/],
    [["key", "revoke", "key_000000000000000000"], /no key with the id/],
    [["topup", "--account", "alice", "--usd", "2", "--id", "pay_1"], /another amount/],
    [["account", "adjust", "alice", "--usd", "-2", "--id", "a", "--note", "n"], /available_usd/],
  ];
  for (const [argv, reason] of refusals) {
    const ran = await tollgate(...argv);
    assert.equal(ran.status, 1, argv.join(" "));
    assert.equal(ran.out, "");
    assert.match(ran.err, reason);
    const asJson = await tollgate(...argv, "--json");
    assert.equal(asJson.status, 1);
    assert.equal(asJson.out, "", "nothing is printed that a program could take for an answer");
  }
});

test("a refusal names the option that was typed, not the API's member", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  const made = JSON.parse((await tollgate("key", "create", "--account", "alice", "--group", "big", "--json")).out);
  const create = ["key", "create", "--account", "alice", "--group", "big"];
  const refusals: [argv: string[], words: RegExp][] = [
    [["key", "limit", made.id, "--from", "10.0.0.0/8,10.0.0.999"], /^Refused: --from, no\. 2, must be .*\n.*0 to 255/],
    [["key", "limit", made.id, "--models", "big, b c"], /^Refused: --models, no\. 2, must be/],
    [["key", "limit", made.id, "--models", "nope"], /^Refused: --models, no\. 1, is `nope`/],
    [["key", "rotate", made.id, "--overlap", "400d"], /^Refused: --overlap must be/],
    [[...create, "--idempotency-id", "a b"], /^Refused: --idempotency-id must be/],
    [["code", "create", "--card", "day", "--count", "1", "--redeem-by", "soon"], /^Refused: --redeem-by must be/],
    [["account", "notify", "alice", "--below", "8999999999"], /^(?:Refused: )?--below must be/],
  ];
  for (const [argv, words] of refusals) {
    const { status, err } = await tollgate(...argv);
    assert.ok(status > 0, argv.join(" "));
    assert.match(err, words, argv.join(" "));
  }
});

test("a command that a refusal proposes is written as this program is run, and ends the message", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  await tollgate("topup", "--account", "alice", "--usd", "1", "--id", "pay_1");
  await tollgate("account", "create", "gone");
  await tollgate("account", "close", "gone");
  const refusals: [argv: string[], command: string][] = [
    [["account", "show", "nobody"], "account create nobody"],
    [["topup", "--account", "gone", "--usd", "2", "--id", "a"], "account adjust gone --usd -AMOUNT --id ID --note WHY"],
    [["account", "rename", "alice", "gone"], "account rename gone NAME"],
    [["account", "create", "alice", "--plan", "pro"], "account set-plan alice PLAN"],
    [["topup", "--account", "alice", "--usd", "2", "--id", "pay_1"], "ledger show --account alice"],
    [["account", "adjust", "alice", "--usd", "-2", "--id", "a", "--note", "n"], "account show alice"],
    [["key", "revoke", "key_000000000000000000"], "key list --account NAME"],
    [["code", "void", "code_0000000000000000"], "code list"],
  ];
  for (const [argv, command] of refusals) {
    const { status, err } = await tollgate(...argv);
    assert.equal(status, 1, argv.join(" "));
    assert.ok(err.endsWith(`: ${COMMAND} ${command}\n`), err);
  }
});

test("a store that is unusable, or whose state is unknown, is exit status 1", async (t) => {
  const found = { problem: null, waiting_charges: 0, differences: [], confirm: null };
  const answers: [
    answer: Omit<StoreAnswer, keyof typeof found> & Partial<StoreAnswer>,
    status: number,
    words: RegExp,
  ][] = [
    [{ state: "good" }, 0, /^The store has all of its data\./],
    [{ state: "restoring" }, 1, /^The store is confirmed/],
    [{ state: "unknown" }, 1, /^The store has not answered/],
    [
      { state: "good", problem: "the store does not answer" },
      1,
      /^The store cannot be used: the store does not answer\.\nCharges/,
    ],
    [{ state: "stopped", confirm: "0123456789ab" }, 1, /^The store lost data\.[\s\S]* store confirm 0123456789ab\n/],
  ];
  for (const [answer, status, words] of answers) {
    const storeStatus = async () => ({ ...found, ...answer });
    const { tollgate } = await startGateway(t, { storeStatus, confirmStore: async () => "confirmed" });
    const ran = await tollgate("store", "status");
    assert.equal(ran.status, status, answer.state);
    assert.match(ran.out, words);
    assert.equal(ran.err, status === 0 ? "" : "New requests are refused until the store can be used.\n");
    assert.equal((await tollgate("store", "status", "--json")).status, status);
    if (answer.state === "restoring") assert.equal((await tollgate("store", "confirm", "0123456789ab")).status, 0);
  }
});

test("a wrong or missing token is refused, and the message says where it came from", async (t) => {
  const { env } = await startGateway(t);
  const dir = await folder(t);
  const wrong = await run(["account", "list"], { env: { ...env, TOLLGATE_ADMIN_TOKEN: "wrong-token" } });
  assert.equal(wrong.status, 1);
  assert.match(wrong.err, /not the admin token/);
  assert.match(wrong.err, /came from the environment variable TOLLGATE_ADMIN_TOKEN/);
  assert.ok(!wrong.err.includes("wrong-token"));
  const none = await run(["account", "list", "--data", dir], { env: { TOLLGATE_ADMIN_URL: env.TOLLGATE_ADMIN_URL } });
  assert.equal(none.status, 1);
  assert.match(none.err, /needs the admin token[\s\S]*admin-token/);
  for (const { err } of [wrong, none]) {
    assert.match(err, /\nIt must be admin_token of the gateway's configuration, or without one/);
    assert.doesNotMatch(err, /authorization|Bearer|nowhere/);
  }
});

test("the token file of the data folder is used, by option before environment", async (t) => {
  const { env } = await startGateway(t);
  const url = { TOLLGATE_ADMIN_URL: env.TOLLGATE_ADMIN_URL };
  const right = await folder(t);
  const wrong = await folder(t);
  await writeFile(join(right, "admin-token"), `${ADMIN_TOKEN}\n`);
  await writeFile(join(wrong, "admin-token"), "two words\n");
  assert.equal((await run(["account", "list", "--data", right], { env: url })).status, 0);
  assert.equal((await run(["account", "list"], { env: { ...url, TOLLGATE_DATA: right } })).status, 0);
  assert.equal((await run(["account", "list", "--data", right], { env: { ...url, TOLLGATE_DATA: wrong } })).status, 0);
  const bad = await run(["account", "list", "--data", wrong], { env: url });
  assert.equal(bad.status, 1);
  assert.match(bad.err, /is not an admin token/);
  assert.ok(!bad.err.includes("two words"));
});

test("if no folder is named, the token is that of ./data, or else that of the demo in ./data/demo", async (t) => {
  const { env } = await startGateway(t);
  const dir = await folder(t);
  // A separate process, because the token is searched for below the current folder.
  const list = () =>
    new Promise<{ status: number | null; err: string }>((resolve) => {
      const options = { cwd: dir, env: { ...BARE_ENV, TOLLGATE_ADMIN_URL: env.TOLLGATE_ADMIN_URL } };
      const child = execFile(process.execPath, [PROGRAM, "account", "list"], options, (_error, _out, err) =>
        resolve({ status: child.exitCode, err }),
      );
    });
  assert.match(
    (await list()).err,
    /No token was sent: .* no file \/.*\/data\/admin-token; use --data or TOLLGATE_DATA/,
  );
  await mkdir(join(dir, "data/demo"), { recursive: true });
  await writeFile(join(dir, "data/demo/admin-token"), `${ADMIN_TOKEN}\n`);
  assert.deepEqual(await list(), { status: 0, err: "" });
  await writeFile(join(dir, "data/demo/admin-token"), "of-the-demonstration\n");
  assert.match((await list()).err, /came from the file data\/demo\/admin-token; use --data/);
  // A gateway with its configuration elsewhere: there is no tollgate.yaml in this folder.
  await writeFile(join(dir, "data/admin-token"), `${ADMIN_TOKEN}\n`);
  assert.deepEqual(await list(), { status: 0, err: "" });
  // A demo in a folder that another gateway has used: the demo's token is tried if the other one is refused.
  await writeFile(join(dir, "data/admin-token"), "of-another-gateway\n");
  assert.match(
    (await list()).err,
    /came from the file data\/admin-token, then the file data\/demo\/admin-token; use --data/,
  );
  await writeFile(join(dir, "data/demo/admin-token"), `${ADMIN_TOKEN}\n`);
  assert.deepEqual(await list(), { status: 0, err: "" });
});

test("the gateway is found by --admin before the environment, as a URL or as host and port", async (t) => {
  const { env } = await startGateway(t);
  const away = { ...env, TOLLGATE_ADMIN_URL: `http://127.0.0.1:${await refusingPort(t)}` };
  for (const address of [env.TOLLGATE_ADMIN_URL as string, new URL(env.TOLLGATE_ADMIN_URL as string).host])
    assert.equal((await run(["account", "list", "--admin", address], { env: away })).status, 0, address);
  for (const wrong of ["8788", "ftp://127.0.0.1", "http://me:secret@127.0.0.1:1", ""]) {
    const ran = await run(["account", "list", "--admin", wrong], { env });
    assert.equal(ran.status, 2, wrong);
    assert.match(ran.err, /^--admin must be an address such as http:\/\/127\.0\.0\.1:8788/);
    assert.ok(!ran.err.includes("secret"));
  }
});

test("without a gateway the message says where it looked and how to start one", async (t) => {
  const url = `http://127.0.0.1:${await refusingPort(t)}`;
  const env = { TOLLGATE_ADMIN_URL: url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const ran = await run(["account", "list"], { env });
  assert.equal(ran.status, 1);
  assert.match(ran.err, new RegExp(`No gateway answers at ${url} \\(ECONNREFUSED\\)`));
  assert.match(ran.err, /tollgate serve\. .* --admin or TOLLGATE_ADMIN_URL\./);
  assert.ok(!ran.err.includes(ADMIN_TOKEN));
});

test("an answer that is not the admin API's, or a redirect, is not trusted", async (t) => {
  const page = await answering(t, 200, "<html>welcome</html>", { "content-type": "text/html" });
  const html = await run(["account", "list"], { env: { TOLLGATE_ADMIN_URL: page, TOLLGATE_ADMIN_TOKEN: "t" } });
  assert.equal(html.status, 1);
  assert.match(html.err, /not Tollgate's admin API/);
  const elsewhere = await answering(t, 307, "", { location: page });
  const env = { TOLLGATE_ADMIN_URL: elsewhere, TOLLGATE_ADMIN_TOKEN: "t" };
  const moved = await run(["topup", "--account", "a", "--usd", "1", "--id", "p"], { env });
  assert.equal(moved.status, 1);
  assert.match(moved.err, /gave no complete answer/);
});

test("if fetch blocks the port of the address, the message says so and that nothing was sent", async () => {
  const env = { TOLLGATE_ADMIN_URL: "http://127.0.0.1:6000", TOLLGATE_ADMIN_TOKEN: "t" };
  const ran = await run(["topup", "--account", "alice", "--usd", "1", "--id", "p"], { env });
  assert.equal(ran.status, 1);
  assert.match(ran.err, /^The port of http:\/\/127\.0\.0\.1:6000 is blocked for HTTP .*; nothing was sent\.$/m);
});

test("after a lost answer to a write the message says that the outcome is unknown", async (t) => {
  const server = createServer((request) => request.socket.destroy());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const env = {
    TOLLGATE_ADMIN_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    TOLLGATE_ADMIN_TOKEN: "t",
  };
  const write = await run(["topup", "--account", "alice", "--usd", "1", "--id", "p"], { env });
  assert.equal(write.status, 1);
  assert.match(write.err, /unknown[\s\S]*same --id/);
  const explain = ["explain", "--key-id", "key_000000000000000000", "--model", "m", "--protocol", "chat"];
  for (const argv of [["account", "list"], explain]) {
    const read = await run(argv, { env });
    assert.equal(read.status, 1);
    assert.match(read.err, /gave no complete answer/);
    assert.doesNotMatch(read.err, /Whether the change/);
  }
});

test("if no server was reached, the message does not say that the outcome of a write is unknown", async () => {
  const write = ["topup", "--account", "alice", "--usd", "1", "--id", "p"];
  const env = { TOLLGATE_ADMIN_URL: "https://127.0.0.1:8788", TOLLGATE_ADMIN_TOKEN: "t" };
  for (const [code, words] of [
    ["ENETUNREACH", /^No gateway answers at https:.*ENETUNREACH/],
    ["EAI_AGAIN", /^No gateway answers/],
    ["UND_ERR_CONNECT_TIMEOUT", /^No gateway answers/],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", /certificate .* is not accepted \(DEPTH_ZERO_SELF_SIGNED_CERT\); nothing was sent/],
  ] as const) {
    const failing = () =>
      Promise.reject(new TypeError("fetch failed", { cause: Object.assign(new Error(), { code }) }));
    const ran = await run(write, { env, fetch: failing });
    assert.equal(ran.status, 1, code);
    assert.match(ran.err, words);
    assert.doesNotMatch(ran.err, /Whether the change/, code);
  }
});

test("https:// for a gateway that speaks plain HTTP gets a message that says so", async (t) => {
  const { env } = await startGateway(t);
  const address = (env.TOLLGATE_ADMIN_URL as string).replace("http://", "https://");
  const ran = await run(["account", "create", "alice", "--admin", address], { env });
  assert.equal(ran.status, 1);
  assert.match(ran.err, /does not speak TLS \(\w+\)\.\nPerhaps the address must begin with http:\/\/ /);
  assert.doesNotMatch(ran.err, /Whether the change/);
});
