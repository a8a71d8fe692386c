/**
 * docs/failure-model.md rows 30 and 55, D7: at most 64 KiB of a body are read before its key is known to be valid. This
 * costs one more read of the store for such bodies and none for others (ARCHITECTURE.md promise 5).
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { after, before } from "node:test";
import { UNPROVEN_BYTES_MAX } from "../../../../src/accept/body.ts";
import { HTTP_LIMITS } from "../../../../src/accept/http-limits.ts";
import { newAccountTag, newKey } from "../../../../src/values/key.ts";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { ask, assertAtRest, bodyOf, PROTOCOL_LIST, pathOf } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
let revoked: TestAccount;
before(async () => {
  // Without a trusted address, so that bad keys stay 401 however many there are.
  here = await startGatewayHere({ config: (places) => `${testConfig(places)}trust_proxy: [127.0.0.1/32]\n` });
  account = await here.account();
  revoked = await here.account();
  await here.store.revokeKey(revoked.tag, revoked.keyId);
});
after(() => here.close());

const LARGE = 32_000_000;
const SENT = Buffer.alloc(100_000, 0x20);

function head(key: string, headers: readonly string[], path = pathOf("chat")): string {
  const lines = [`POST ${path} HTTP/1.1`, "Host: gateway.test", `Authorization: Bearer ${key}`, ...headers];
  return `${lines.join("\r\n")}\r\nContent-Type: application/json\r\n\r\n`;
}

const connect = () => new RawSocket({ port: here.port });
const unknownKey = () => newKey(newAccountTag(randomBytes), randomBytes).text;
const chunk = (bytes: Uint8Array) => [`${bytes.length.toString(16)}\r\n`, bytes, "\r\n"] as const;

/** How often the store has been asked, by operation. */
async function asked(): Promise<Record<string, number>> {
  const { body } = await here.gateway.metrics.page();
  const found = body.matchAll(/tollgate_store_seconds_count\{operation="(\w+)"\} (\d+)/g);
  return Object.fromEntries([...found].map(([, name, count]) => [name as string, Number(count)]));
}

/** The store operations that `work` causes on the request path. */
async function askedBy(work: () => Promise<unknown>): Promise<{ readKey: number; admit: number }> {
  const before = await asked();
  await work();
  const now = await asked();
  const more = (name: string) => (now[name] ?? 0) - (before[name] ?? 0);
  return { readKey: more("readKey"), admit: more("admit") };
}

for (const protocol of PROTOCOL_LIST) {
  for (const [kind, keyOf] of [
    ["unknown", unknownKey],
    ["revoked", () => revoked.key],
  ] as const) {
    test(`${protocol}: a large body with a key that is ${kind} is answered without waiting for the body`, async () => {
      const length = `Content-Length: ${LARGE}`;
      const path = pathOf(protocol);
      const waiting = [
        connect().send(head(keyOf(), [length], path)),
        connect().send(head(keyOf(), [length], path), SENT),
        connect().send(head(keyOf(), ["Transfer-Encoding: chunked"], path), ...chunk(SENT)),
        connect().send(head(keyOf(), [length, "Expect: 100-continue"], path)),
      ];
      for (const client of waiting) {
        const responses = await client.responsesUntilClosed();
        assert.deepEqual(
          responses.map(({ status, headers }) => [status, headers.connection]),
          [[401, "close"]],
        );
        assert.equal(JSON.parse(responses[0]?.body ?? "{}").error.cause, `${kind}_key`);
        assert.doesNotMatch(client.text, /100 Continue/);
      }
    });
  }
}

test("a client that keeps sending is read for a while and no further, and gets its answer", async () => {
  const client = connect().send(head(unknownKey(), [`Content-Length: ${LARGE}`]));
  const piece = Buffer.alloc(65_536, 0x20);
  while (!client.isClosed && client.socket.bytesWritten < LARGE) {
    if (client.socket.write(piece)) continue;
    await Promise.race([new Promise((resolve) => client.socket.once("drain", resolve)), client.closed]);
  }
  const [response] = await client.responsesUntilClosed();
  assert.equal(response?.status, 401);
  // What both kernels buffer comes on top.
  assert.ok(client.socket.bytesWritten < HTTP_LIMITS.lingerBytesMax + 12_000_000, String(client.socket.bytesWritten));
});

test("an answer arrives although the client sends its whole body before reading", async () => {
  for (const headers of [[], ["Expect: 100-continue"]]) {
    for (const bytes of [1_000, UNPROVEN_BYTES_MAX, 1_000_000, 3_000_000]) {
      const client = connect();
      client.socket.pause();
      client.send(head("sk-short", [`Content-Length: ${bytes}`, ...headers]), Buffer.alloc(bytes, 0x20));
      await new Promise((resolve) => client.socket.write("", resolve));
      client.socket.resume();
      const [response] = await client.responses(1);
      client.close();
      assert.equal(response?.status, 401, `${bytes} bytes ${headers}`);
    }
  }
});

test("a valid key costs one more round trip for a large body only, and 100 Continue follows the lookup", async () => {
  const body = (bytes: number) => JSON.stringify(bodyOf("chat", { metadata: { pad: "x".repeat(bytes) } }));
  const large = body(UNPROVEN_BYTES_MAX);
  const expecting = async () => {
    const client = connect().send(head(account.key, [`Content-Length: ${large.length}`, "Expect: 100-continue"]));
    await client.until((text) => text.includes("\r\n\r\n"));
    assert.match(client.text, /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    const [response] = await client.send(large).responses(1);
    client.close();
    assert.equal(response?.status, 200);
  };
  assert.deepEqual(await askedBy(expecting), { readKey: 1, admit: 1 });
  const chunked = async (text: string) => {
    const client = connect().send(head(account.key, ["Transfer-Encoding: chunked"]));
    for (let at = 0; at < text.length; at += 30_000) client.send(...chunk(Buffer.from(text.slice(at, at + 30_000))));
    const [response] = await client.send("0\r\n\r\n").responses(1);
    client.close();
    assert.equal(response?.status, 200);
  };
  assert.deepEqual(await askedBy(() => chunked(body(400_000))), { readKey: 1, admit: 1 });
  assert.deepEqual(await askedBy(() => chunked(body(1_000))), { readKey: 0, admit: 1 });
  const small = body(UNPROVEN_BYTES_MAX - body(0).length);
  assert.equal(small.length, UNPROVEN_BYTES_MAX);
  assert.deepEqual(await askedBy(() => ask(here, "chat", account.key, {}, { raw: small })), { readKey: 0, admit: 1 });
  assert.deepEqual(await askedBy(() => ask(here, "chat", account.key, {}, { raw: `${small} ` })), {
    readKey: 1,
    admit: 1,
  });
  const faulty = async () => {
    const reply = await ask(here, "chat", account.key, {}, { raw: `{"a":"${"x".repeat(100_000)}"` });
    assert.equal(reply.status, 400);
  };
  assert.deepEqual(await askedBy(faulty), { readKey: 1, admit: 0 }, "a known key is not looked up again");
  await assertAtRest(here, account);
});

test("promise 4: the early lookup of a key applies to its request and not to the next one", async () => {
  const owner = await here.account();
  const raw = JSON.stringify(bodyOf("chat", { metadata: { pad: "x".repeat(100_000) } }));
  assert.equal((await ask(here, "chat", owner.key, {}, { raw })).status, 200);
  await here.store.revokeKey(owner.tag, owner.keyId);
  const client = connect().send(head(owner.key, [`Content-Length: ${LARGE}`]));
  const [response] = await client.responsesUntilClosed();
  assert.equal(response?.status, 401);
  await assertAtRest(here, owner);
});

test("a key that is revoked while its large body arrives is refused at admission", async () => {
  const owner = await here.account();
  const raw = JSON.stringify(bodyOf("chat", { metadata: { pad: "x".repeat(100_000) } }));
  const client = connect().send(head(owner.key, [`Content-Length: ${raw.length}`, "Expect: 100-continue"]));
  await client.until((text) => text.includes("100 Continue"));
  await here.store.revokeKey(owner.tag, owner.keyId);
  const [response] = await client.send(raw).responses(1);
  client.close();
  assert.equal(response?.status, 401);
  await assertAtRest(here, owner);
});

test("references in a small body are expanded only after the key is known to be valid, and only up to a multiple of its size", async () => {
  here.simulator.program({ text: "many words ".repeat(8_000) });
  const fields = { store: undefined, max_output_tokens: 30_000 };
  const first = await ask(here, "responses", account.key, fields);
  const id = ((await first.json()) as { output: { id: string }[] }).output[0]?.id;
  const referring = (times: number) => ({
    ...fields,
    input: [
      ...Array.from({ length: times }, () => ({ type: "item_reference", id })),
      { role: "user", content: "Go on." },
    ],
  });
  const many = referring(64);
  assert.ok(JSON.stringify(bodyOf("responses", many)).length < UNPROVEN_BYTES_MAX);
  const answers = async (key: string, times: number, status: number, cause: string | undefined) => {
    const reply = await ask(here, "responses", key, referring(times));
    assert.equal(reply.status, status);
    const { error } = (await reply.json()) as { error?: { cause: string; remedy: string } };
    assert.equal(error?.cause, cause);
    return error;
  };
  for (const times of [1, 64]) {
    const bad = async () => void (await answers(newKey(account.tag, randomBytes).text, times, 401, "unknown_key"));
    assert.deepEqual(await askedBy(bad), { readKey: 1, admit: 0 }, `${times}`);
  }
  const good = async () => void (await answers(account.key, 1, 200, undefined));
  assert.deepEqual(await askedBy(good), { readKey: 1, admit: 1 });
  assert.match((await answers(account.key, 64, 413, "body_too_large"))?.remedy ?? "", /items themselves/);
  await assertAtRest(here, account);
});
