/**
 * `Idempotency-Key` (docs/decisions/idempotency-keeps-no-bodies.md): one request of a key is answered and charged; the
 * answers to the others name that request.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { ERROR_ROWS } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { exchange } from "../../../rig/raw-socket.ts";
import { ask, assertAtRest, bodyOf, errorOf, type Fields, PROTOCOL_LIST, pathOf, usageLines } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());
afterEach(() => here.simulator.clearPrograms());

const ON = { enabled: true, keepMs: 86_400_000 };
/** Disabled by default; each test that needs the header enables it. */
function heed(idempotency: { enabled: boolean; keepMs: number }): void {
  here.gateway.reload({ ...here.settings, idempotency });
}

const keyed = (
  protocol: Protocol,
  account: TestAccount,
  { key = "order-1", fields = {} as Fields, signal = undefined as AbortSignal | undefined } = {},
) => ask(here, protocol, account.key, fields, { headers: { "idempotency-key": key }, ...(signal ? { signal } : {}) });

type KeyCause = Extract<keyof typeof ERROR_ROWS, `idempotency_${string}`>;

/** Asserts status, wording and headers of a refusal, and that it names the request that has the key. */
async function assertTaken(reply: Response, protocol: Protocol, cause: KeyCause, first: Response): Promise<void> {
  const { status, headers } = reply;
  const error = await errorOf(reply);
  const row: { status: number; identifier: string; summary: string; shouldRetry?: boolean } = ERROR_ROWS[cause];
  assert.deepEqual([status, error.cause, error.type], [row.status, cause, row.identifier]);
  assert.ok(error.message.includes(row.summary), error.message);
  assert.ok(error.message.includes(first.headers.get("x-request-id") as string), error.message);
  assert.notEqual(headers.get("x-request-id"), first.headers.get("x-request-id"));
  assert.equal(headers.get("x-should-retry"), row.shouldRetry === undefined ? null : String(row.shouldRetry));
  assert.equal(headers.get("retry-after"), cause === "idempotency_in_progress" ? "2" : null);
  if (protocol === "messages") assert.ok(error.message.startsWith("Idempotency-Key: "), error.message);
  else assert.deepEqual([error.param, error.code], ["Idempotency-Key", cause]);
}

async function assertCharges(account: TestAccount, count: number): Promise<void> {
  await assertAtRest(here, account);
  assert.equal((await usageLines(here, account)).length, count);
}

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: a repeated request is refused while the first runs and after it finished; the key never goes upstream`, async () => {
    heed(ON);
    const account = await here.account();
    const before = here.simulator.count;
    here.simulator.hold();
    const pending = keyed(protocol, account);
    await here.simulator.waitFor(before + 1);
    const during = await keyed(protocol, account);
    const other = await keyed(protocol, account, { fields: { temperature: 0.5 } });
    here.simulator.release();
    const first = await pending;
    assert.equal(first.status, 200);
    await first.text();
    await assertTaken(during, protocol, "idempotency_in_progress", first);
    await assertTaken(other, protocol, "idempotency_key", first);
    await assertTaken(await keyed(protocol, account), protocol, "idempotency_finished", first);
    assert.equal(here.simulator.count, before + 1);
    assert.ok(!JSON.stringify(here.simulator.requests.at(-1)).includes("order-1"));
    await assertCharges(account, 1);
  });

  test(`${protocol}: a repeat is refused after a delivered stream, and if the same key has another body`, async () => {
    heed(ON);
    const account = await here.account();
    const fields = { stream: true };
    const first = await keyed(protocol, account, { fields });
    assert.equal(first.status, 200);
    await first.text();
    await assertTaken(await keyed(protocol, account, { fields }), protocol, "idempotency_streamed", first);
    await assertTaken(await keyed(protocol, account), protocol, "idempotency_key", first);
    await assertCharges(account, 1);
  });

  test(`${protocol}: of twenty concurrent requests under one key one is answered and charged`, async () => {
    heed(ON);
    const account = await here.account();
    const replies = await Promise.all(Array.from({ length: 20 }, () => keyed(protocol, account)));
    const statuses = replies.map(({ status }) => status);
    assert.deepEqual([statuses.filter((s) => s === 200).length, statuses.filter((s) => s === 409).length], [1, 19]);
    await Promise.all(replies.map((reply) => reply.text()));
    await assertCharges(account, 1);
  });

  test(`${protocol}: an immediate retry after an upstream failure is a new request, with this body or another`, async () => {
    heed(ON);
    const account = await here.account();
    for (let round = 0; round < 10; round++) {
      here.simulator.program({ fault: { status: 500 } }, { times: 2 });
      const failed = await keyed(protocol, account, { fields: { temperature: Math.floor(round / 2) / 10 } });
      assert.deepEqual([failed.status, (await errorOf(failed)).cause], [403, "upstream_unavailable"]);
    }
    const answered = await keyed(protocol, account);
    assert.equal(answered.status, 200);
    await answered.text();
    await assertCharges(account, 1);
  });

  test(`${protocol}: a request refused for funds, limits, model or body does not use up its key`, async () => {
    heed(ON);
    const account = await here.account({ usd: "0" });
    const causeOf = async (fields: Fields = {}) => (await errorOf(await keyed(protocol, account, { fields }))).cause;
    assert.equal(await causeOf(), "insufficient_balance");
    assert.equal(await causeOf({ model: "no-such-model" }), "unknown_model");
    assert.equal(await causeOf({ stream: 1 }), "wrong_type");
    await here.store.credit(account.tag, {
      id: "more",
      amount: 1_000_000_000n,
      kind: "topup",
      note: "",
    });
    const reply = await keyed(protocol, account, { fields: { temperature: 0.1 } });
    assert.equal(reply.status, 200);
    await reply.text();
    await assertCharges(account, 1);
  });

  test(`${protocol}: a client that disconnected before anything was delivered may send the request again`, async () => {
    heed(ON);
    const account = await here.account();
    const ends = () => here.log.filter(({ msg }) => msg === "request").length;
    const [arrived, ended] = [here.simulator.count, ends()];
    const leaving = new AbortController();
    here.simulator.hold();
    const left = assert.rejects(keyed(protocol, account, { signal: leaving.signal }));
    await here.simulator.waitFor(arrived + 1);
    leaving.abort();
    await left;
    await here.logged(() => ends() > ended);
    here.simulator.release();
    const reply = await keyed(protocol, account);
    assert.equal(reply.status, 200);
    await reply.text();
    const [absorbed, usage, ...rest] = await usageLines(here, account);
    assert.deepEqual([(usage ?? absorbed)?.kind, rest], ["usage", []]);
  });

  test(`${protocol}: if disabled, which is the default, the header has no effect`, async () => {
    heed(here.settings.idempotency);
    const account = await here.account();
    for (const key of ["order-1", "order-1", "k".repeat(300)]) {
      const reply = await keyed(protocol, account, { key });
      assert.equal(reply.status, 200);
      await reply.text();
    }
    await assertCharges(account, 3);
    assert.deepEqual((await here.store.inspect(account.tag))?.idempotency, []);
  });

  test(`${protocol}: a key that is empty, too long, not ASCII or sent twice is 400, after 401 and before 404`, async () => {
    heed(ON);
    const account = await here.account();
    const asked = async (lines: string, key = account.key, fields: Fields = {}) => {
      const body = JSON.stringify(bodyOf(protocol, fields));
      const head = `POST ${pathOf(protocol)} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer ${key}`;
      const rest = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${lines}\r\n\r\n`;
      const [reply] = await exchange(here, `${head}\r\n${rest}${body}`);
      assert.ok(reply);
      if (reply.status === 200) return [200];
      const { error } = JSON.parse(reply.body) as { error: { cause: string; message: string } };
      assert.ok(error.cause !== "idempotency_key" || error.message.includes("Idempotency-Key"), error.message);
      return [reply.status, error.cause];
    };
    const refused = [400, "idempotency_key"];
    assert.deepEqual(await asked("idempotency-key:"), refused);
    assert.deepEqual(await asked(`idempotency-key: ${"k".repeat(256)}`), refused);
    assert.deepEqual(await asked("idempotency-key: \u00e9"), refused);
    assert.deepEqual(await asked("idempotency-key: a\r\nIdempotency-Key: a"), refused);
    assert.deepEqual(await asked("idempotency-key:", account.key, { model: "no-such-model" }), refused);
    assert.deepEqual(await asked("idempotency-key:", `sk-${"a".repeat(48)}`), [401, "unknown_key"]);
    assert.deepEqual(await asked(`IDEMPOTENCY-KEY: ${"k".repeat(255)}`), [200]);
    assert.deepEqual(await asked(`idempotency-key: ${"k".repeat(255)}`), [409, "idempotency_finished"]);
  });

  test(`${protocol}: explaining a request does not use up its key`, async () => {
    heed(ON);
    const account = await here.account();
    const headers = { "idempotency-key": "order-1" };
    const path = `/v1/explain?protocol=${protocol}`;
    for (let i = 0; i < 2; i++) {
      const explained = await ask(here, protocol, account.key, {}, { headers, path });
      assert.equal(((await explained.json()) as { expected: { status: number } }).expected.status, 200);
    }
    const reply = await keyed(protocol, account);
    assert.equal(reply.status, 200);
    await reply.text();
  });
}

test("the same key and body on two paths are two requests, and each account has its own keys", async () => {
  heed(ON);
  const [one, two] = [await here.account(), await here.account()];
  const raw = JSON.stringify({ model: "messages-1", max_tokens: 20, messages: [{ role: "user", content: "hello" }] });
  const options = { raw, headers: { "idempotency-key": "order-1" } };
  const first = await ask(here, "messages", one.key, {}, options);
  assert.equal(first.status, 200);
  await first.text();
  await assertTaken(await ask(here, "chat", one.key, {}, options), "chat", "idempotency_key", first);
  const other = await ask(here, "chat", two.key, {}, options);
  assert.equal(other.status, 200);
  await other.text();
});
