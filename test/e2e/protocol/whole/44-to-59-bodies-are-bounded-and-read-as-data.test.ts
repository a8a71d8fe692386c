/**
 * docs/failure-model.md rows 44 to 59 through the whole gateway: hostile bodies cost little, are not charged and change
 * nothing.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { longestTurn, workTimer } from "../../../rig/stopwatch.ts";
import { ask, assertAtRest, bodyOf, errorOf, type Fields, LIMIT_FIELD, PROTOCOL_LIST } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere();
  account = await here.account();
});
after(() => here.close());

/** After each row nothing is held, and the process answers. */
afterEach(async () => {
  await assertAtRest(here, account);
  assert.equal((await ask(here, "chat", account.key)).status, 200);
});

/** A collection of garbage can block the event loop too, but not each time. */
const TRIES = 8;

async function refused(protocol: Protocol, raw: string | Uint8Array<ArrayBuffer>, headers = {}): Promise<string> {
  const reply = await ask(here, protocol, account.key, {}, { raw, headers });
  if (reply.status === 200) return "200";
  return `${reply.status} ${(await errorOf(reply)).cause}`;
}

test("row 44: too deep nesting is refused at once", async () => {
  for (const depth of [5_000, 5_000_000]) {
    for (const open of ["[", '{"a":']) {
      const raw = Buffer.from(`{"model":"chat-1","messages":${open.repeat(depth)}`);
      const worked = workTimer();
      assert.equal(await refused("chat", raw), "400 not_json");
      assert.ok(worked() < 2_000, "the refusal does not wait for a parser");
    }
  }
});

test("row 45: millions of values are refused because of their number", async () => {
  const many = (count: number, value: string) => `{"model":"chat-1","messages":[${`${value},`.repeat(count)}1]}`;
  for (const raw of [many(5_000_000, "{}"), many(1_000_000, '{"role":"user","content":"x"}')]) {
    assert.equal(await refused("chat", raw), "413 body_too_large");
  }
});

test("rows 45 and 46: more than 256 members at the top level are refused, whatever their names", async () => {
  const named = (count: number, name: (i: number) => string) =>
    `{"model":"chat-1","messages":[],${Array.from({ length: count }, (_, i) => `"${name(i)}":1`).join()}}`;
  for (const name of [
    (i: number) => `k${i}`,
    (i: number) => `${i * 65_536}`,
    (i: number) => `\\u006b${i}`,
    () => "a",
    () => "x".repeat(9_000),
  ]) {
    const reply = await ask(here, "chat", account.key, {}, { raw: named(300, name) });
    assert.equal(reply.status, 400);
    const { cause, message } = await errorOf(reply);
    assert.equal(cause, "not_json");
    assert.match(message, /more than (256 members at its top level|8192 bytes)/);
  }
  assert.equal((await ask(here, "chat", account.key, {}, { raw: named(254, (i) => `k${i}`) })).status, 200);
});

/** Parts of a body, of about this many bytes, that were the slowest of each kind to parse; the rest is a valid body. */
const SLOW_PARTS: Readonly<Record<string, (bytes: number) => string>> = {
  "a text": (bytes) => `"${"x".repeat(bytes)}"`,
  escapes: (bytes) => `"${"\\n".repeat(bytes / 2)}"`,
  "wide characters": (bytes) => `"${"é\\n".repeat(bytes / 4)}"`,
  names: (bytes) => `{${Array.from({ length: Math.min(200_000, bytes / 14) }, (_, i) => `"k${i * 7_919}":1`).join()}}`,
  "integer-like names": (bytes) =>
    `{${Array.from({ length: Math.min(200_000, bytes / 14) }, (_, i) => `"${i * 65_536}":1`).join()}}`,
  "objects, no two alike": (bytes) =>
    `[${Array.from({ length: Math.min(160_000, bytes / 14) }, (_, i) => `{"k${i}":1}`).join()}]`,
  numbers: (bytes) => `[${"1,".repeat(Math.min(480_000, bytes / 2))}1]`,
  nests: (bytes) => `[${`${"[".repeat(100)}${"]".repeat(100)},`.repeat(Math.min(4_000, bytes / 201))}1]`,
  messages: (bytes) => `[${`{"role":"user","content":"${"x".repeat(300)}"},`.repeat(Math.min(90_000, bytes / 330))}1]`,
};

for (const [bytes, heldMsMax] of [
  [1_000_000, 50],
  [30_000_000, 150],
] as const) {
  for (const [name, part] of Object.entries(SLOW_PARTS)) {
    test(`rows 45 and 46: ${bytes} bytes of ${name} block no other request for ${heldMsMax} ms`, async () => {
      // A model that does not exist: the body is read completely and goes nowhere.
      const raw = Buffer.from(`{"model":"no-such-model","messages":[],"metadata":${part(bytes)}}`);
      const heldMs: number[] = [];
      while (heldMs.length < TRIES && Math.min(...heldMs, Number.POSITIVE_INFINITY) >= heldMsMax) {
        const longest = longestTurn();
        assert.equal(await refused("chat", raw), "404 unknown_model");
        heldMs.push(longest());
      }
      assert.ok(Math.min(...heldMs) < heldMsMax, `the event loop was blocked for ${heldMs.join(", ")} ms`);
    });
  }
}

test("row 47: a member that affects routing or billing may appear once, however it is spelled", async () => {
  for (const second of ['"model"', '"mod\\u0065l"', '"\\u006d\\u006f\\u0064\\u0065\\u006c"']) {
    const raw = `{"model":"chat-1",${second}:"chat-alias","messages":[]}`;
    assert.equal(await refused("chat", raw), "400 duplicate_field");
  }
  for (const [name, value] of [
    ["stream", "true"],
    ["max_tokens", "5"],
    ["messages", "[]"],
    ["n", "2"],
  ] as const) {
    const raw = `{"model":"chat-1","messages":[],"${name}":${value},"${name}":${value}}`;
    assert.equal(await refused("chat", raw), "400 duplicate_field", name);
  }
});

test("row 48: member names that could reach a prototype are treated as data", async () => {
  const evil = '"__proto__":{"stream":true,"polluted":1},"constructor":{"prototype":{"polluted":1}}';
  const raw = `{"model":"chat-1","messages":[{"role":"user","content":"x",${evil}}],${evil}}`;
  const reply = await ask(here, "chat", account.key, {}, { raw });
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get("content-type"), "application/json");
  assert.equal(here.simulator.requests.at(-1)?.body.toString().includes('"__proto__":{"stream":true'), true);
  assert.equal(({} as { stream?: unknown }).stream, undefined);
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
});

test("row 49: an output limit must be a whole number that can be billed", async () => {
  for (const protocol of PROTOCOL_LIST) {
    const zero = protocol === "messages" ? [] : ["0"];
    for (const literal of ["-1", ...zero, "1.5", "1e400", '"100"', "9007199254740992", "[]", "true"]) {
      const field = LIMIT_FIELD[protocol];
      const raw = JSON.stringify(bodyOf(protocol, { [field]: "LIMIT" })).replace('"LIMIT"', literal);
      assert.equal(await refused(protocol, raw), "400 wrong_type", `${protocol} ${literal}`);
    }
    const nan = JSON.stringify(bodyOf(protocol, { [LIMIT_FIELD[protocol]]: "LIMIT" })).replace('"LIMIT"', "NaN");
    assert.equal(await refused(protocol, nan), "400 not_json");
  }
  // From messages to messages, a limit of 0 warms a prompt cache.
  assert.equal((await ask(here, "messages", account.key, { max_tokens: 0 })).status, 200);
});

test("row 51: text that is not UTF-8 is refused", async () => {
  const bad = { "ff fe": [0xff, 0xfe], overlong: [0xc0, 0xaf], surrogate: [0xed, 0xa0, 0x80], cut: [0xe2, 0x82] };
  for (const [name, bytes] of Object.entries(bad)) {
    const raw = Buffer.concat([
      Buffer.from('{"model":"chat-1","messages":[{"role":"user","content":"'),
      Buffer.from(bytes),
      Buffer.from('"}]}'),
    ]);
    assert.equal(await refused("chat", raw), "400 not_json", name);
  }
  const good = JSON.stringify(bodyOf("chat"));
  assert.equal(await refused("chat", Buffer.from(`\ufeff${good}`)), "400 not_json");
  assert.equal(await refused("chat", Buffer.from(good, "utf16le")), "400 not_json");
});

test("row 52: escapes pass unchanged, and the log escapes what it shows", async () => {
  const content = "\\ud800 \\u0000 \\u202e \\u001b[31m";
  const raw = `{"model":"chat-1","messages":[{"role":"user","content":"${content}"}]}`;
  assert.equal((await ask(here, "chat", account.key, {}, { raw })).status, 200);
  assert.ok(here.simulator.requests.at(-1)?.body.toString().includes(content));
  const reply = await ask(here, "chat", account.key, { model: "a\u001b[31m\n\u202e\ud800b" });
  const { message } = await errorOf(reply);
  assert.ok(message.includes("a\\u001b[31m\\u000a\\u202e\\ud800b"), message);
});

test("rows 53 and 54: compressed bodies and other media types get 415", async () => {
  const plain = Buffer.from(JSON.stringify(bodyOf("chat")));
  const packed: [string, Buffer][] = [
    ["gzip", gzipSync(plain)],
    ["br", brotliCompressSync(plain)],
    ["deflate", deflateSync(plain)],
    ["zstd", zstdCompressSync(plain)],
    ["gzip, gzip", gzipSync(gzipSync(plain))],
    ["br", brotliCompressSync(Buffer.alloc(100_000_000))],
  ];
  for (const [coding, bytes] of packed) {
    assert.equal(
      await refused("chat", Buffer.from(bytes), { "content-encoding": coding }),
      "415 unsupported_media_type",
    );
  }
  const types = [
    "text/plain",
    "application/json; charset=utf-16",
    "multipart/form-data; boundary=x",
    "application/jsonp",
    "",
  ];
  for (const type of types)
    assert.equal(await refused("chat", plain, { "content-type": type }), "415 unsupported_media_type");
  const allowed = await ask(
    here,
    "chat",
    account.key,
    {},
    { headers: { "content-type": "Application/JSON; Charset=UTF-8" } },
  );
  assert.equal(allowed.status, 200);
});

test("row 55: one byte above the limit is 413, before reading if the headers say so", async () => {
  const bytesMax = 4_096;
  const small = await startGatewayHere({ settings: (was) => ({ ...was, bodyBytesMax: bytesMax }) });
  try {
    const { key, tag } = await small.account();
    const padded = (bytes: number) => {
      const body = JSON.stringify(bodyOf("chat", { pad: "" }));
      return body.replace('"pad":""', `"pad":"${"x".repeat(bytes - body.length)}"`);
    };
    assert.equal((await ask(small, "chat", key, {}, { raw: padded(bytesMax) })).status, 200);
    assert.equal((await ask(small, "chat", key, {}, { raw: padded(bytesMax + 1) })).status, 413);
    const head = (...lines: string[]) =>
      `${["POST /v1/chat/completions HTTP/1.1", "Host: x", `Authorization: Bearer ${key}`, "Content-Type: application/json", ...lines].join("\r\n")}\r\n\r\n`;
    const declared = new RawSocket({ port: small.port }).send(head("Content-Length: 1000000000000"));
    const [told] = await declared.responsesUntilClosed();
    assert.equal(told?.status, 413);
    const body = padded(bytesMax + 1);
    const chunked = new RawSocket({ port: small.port }).send(
      head("Transfer-Encoding: chunked"),
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    );
    const [counted] = await chunked.responsesUntilClosed();
    assert.equal(counted?.status, 413);
    // A bad key is reported first, even here.
    assert.equal((await ask(small, "chat", "sk-bad", {}, { raw: padded(bytesMax + 1) })).status, 401);
    await assertAtRest(small, { tag });
  } finally {
    await small.close();
  }
});

test("row 57: an address inside a body is passed on as data and never fetched", async () => {
  const hits: string[] = [];
  const decoy = await startGatewayHere({ simulator: { onRequest: (seen) => void hits.push(seen.path) } });
  try {
    for (const url of [decoy.simulator.url, "http://169.254.169.254/", "http://[::ffff:127.0.0.1]/"]) {
      const content = [{ type: "image_url", image_url: { url } }];
      const reply = await ask(here, "chat", account.key, { messages: [{ role: "user", content }] });
      assert.equal(reply.status, 200);
      assert.ok(here.simulator.requests.at(-1)?.body.includes(url));
    }
    assert.deepEqual(hits, []);
  } finally {
    await decoy.close();
  }
});

test("row 58: names with line breaks stay in the body", async () => {
  const evil = `x\r\nx-injected: 1\r\n${"y".repeat(1_000_000)}`;
  const fields: Fields = { user: evil, stop: [evil], tools: [{ type: "function", function: { name: evil } }] };
  const reply = await ask(here, "chat", account.key, fields);
  await reply.text();
  assert.equal(reply.headers.get("x-injected"), null);
  assert.ok(!JSON.stringify(here.simulator.requests.at(-1)?.headers).includes("x-injected"));
  const { body } = await here.gateway.metrics.page();
  assert.ok(!body.includes("x-injected"));
});

test("row 59: no text makes a regular expression of the gateway slow", async () => {
  const size = 1_000_000;
  for (const text of [
    `${"a".repeat(size)}!`,
    " ".repeat(size),
    "data:".repeat(size / 5),
    `data:image/png;base64,${"A".repeat(size)}!`,
  ]) {
    const worked = workTimer();
    const content = [
      { type: "image_url", image_url: { url: text } },
      { type: "text", text },
    ];
    const reply = await ask(here, "chat", account.key, { model: text, messages: [{ role: "user", content }] });
    await reply.text();
    await (await ask(here, "chat", account.key, { messages: [{ role: "user", content }] })).text();
    await (await ask(here, "chat", text.trim().slice(0, 15_000))).text();
    assert.ok(worked() < 3_000, text.slice(0, 10));
  }
});
