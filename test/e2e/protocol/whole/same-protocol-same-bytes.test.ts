/**
 * ARCHITECTURE.md promise 6: between client and upstream of the same protocol the bytes are unchanged, except for the
 * documented splices.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

/**
 * Unusual but legal: spacing, key order, a number that JSON.parse would change, escapes, data under an unknown name.
 */
const ODD = `"seed" : 9007199254740993,\t"metadata": {"b":1, "a":-0, "u":"\\ud83d\\ude00"}`;

const REQUESTS = {
  chat: `{ "messages":[{"role":"user","content":"h\\u00e9"}], ${ODD}, "model":"chat-1", "max_tokens": 40 }`,
  messages: `{ "messages":[{"role":"user","content":"h\\u00e9"}], ${ODD}, "model":"messages-1","max_tokens" : 40}`,
  responses: `{ "input":"h\\u00e9", ${ODD}, "store":false, "model":"responses-1", "max_output_tokens": 40}`,
} as const;
const PATHS = { chat: "/v1/chat/completions", messages: "/v1/messages", responses: "/v1/responses" } as const;

function post(path: string, key: string, body: string): Promise<Response> {
  return fetch(here.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body,
  });
}

async function direct(path: string, body: string): Promise<string> {
  const url = here.simulator.url.replace(/\/v1$/, "") + path;
  const reply = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return reply.text();
}

for (const protocol of ["chat", "messages", "responses"] as const) {
  test(`${protocol}: a whole request and its reply pass byte for byte`, async () => {
    const { key } = await here.account();
    const reply = await post(PATHS[protocol], key, REQUESTS[protocol]);
    assert.equal(reply.status, 200);
    const text = await reply.text();
    assert.equal(here.simulator.requests.at(-1)?.body.toString(), REQUESTS[protocol]);
    assert.equal(text, await direct(PATHS[protocol], REQUESTS[protocol]));
  });

  test(`${protocol}: a renamed model is spliced in request and reply, and nothing else is changed`, async () => {
    const { key } = await here.account();
    const aliased = REQUESTS[protocol].replace(/"(chat|messages|responses)-1"/, '"$1-alias"');
    const upstream = REQUESTS[protocol].replace(/"(chat|messages|responses)-1"/, '"$1-1-2026-08"');
    for (const stream of [false, true]) {
      const streamed = (body: string) =>
        stream ? body.replace(/\}$/, ', "stream":true, "stream_options":{"include_usage":true}}') : body;
      const reply = await post(PATHS[protocol], key, streamed(aliased));
      const text = await reply.text();
      assert.equal(here.simulator.requests.at(-1)?.body.toString(), streamed(upstream));
      const expected = await direct(PATHS[protocol], streamed(upstream));
      // The simulator mentions its model in its text too; only the model member may be changed.
      assert.equal(text, expected.replaceAll(`"model":"${protocol}-1-2026-08"`, `"model":"${protocol}-alias"`));
      assert.notEqual(text, expected);
    }
  });

  test(`${protocol}: a stream passes byte for byte, whatever its line endings`, async () => {
    const { key } = await here.account();
    const body = REQUESTS[protocol].replace(/\}$/, ', "stream":true, "stream_options":{"include_usage":true}}');
    for (const lineEnd of ["\n", "\r\n"] as const) {
      here.simulator.program({ lineEnd, pings: 2, chunkBytes: 7 }, { times: 2 });
      const text = await (await post(PATHS[protocol], key, body)).text();
      assert.equal(text, await direct(PATHS[protocol], body));
    }
  });
}

test("chat: usage is requested from the upstream, and the chunk is removed if the client did not ask for it", async () => {
  const { key, tag } = await here.account();
  const body = REQUESTS.chat.replace(/\}$/, ', "stream":true}');
  const text = await (await post(PATHS.chat, key, body)).text();
  const seen = here.simulator.requests.at(-1)?.body.toString() ?? "";
  assert.equal(seen, body.replace(/\}$/, ',"stream_options":{"include_usage":true}}'));
  const full = await direct(PATHS.chat, seen);
  const frames = full.split("\n\n").filter((frame) => !frame.includes('"choices":[]'));
  assert.equal(text, frames.join("\n\n"));
  assert.ok(text.endsWith("data: [DONE]\n\n"));
  const line = (await here.store.readLedger(tag, 0, 10)).at(-1);
  assert.equal(JSON.parse(line?.memo ?? "{}").counted, "upstream");
});

test("responses: store is spliced to false unless the client set it", async () => {
  const { key } = await here.account();
  const body = REQUESTS.responses.replace('"store":false', '"store": true');
  assert.equal((await post(PATHS.responses, key, body)).status, 200);
  assert.equal(
    here.simulator.requests.at(-1)?.body.toString(),
    REQUESTS.responses.replace('"store":false', '"store": false'),
  );
  const include = ["message.output_text.logprobs"];
  const more = `, "include" : ${JSON.stringify(include)}, "reasoning":{"effort":"low"}}`;
  assert.equal((await post(PATHS.responses, key, body.replace(/}$/, more))).status, 200);
  assert.equal(
    here.simulator.requests.at(-1)?.body.toString(),
    REQUESTS.responses
      .replace('"store":false', '"store": false')
      .replace(/}$/, more)
      .replace(JSON.stringify(include), JSON.stringify([...include, "reasoning.encrypted_content"])),
    "reasoning that may be referenced is requested with its content",
  );
});

test("the client's key and headers never go upstream; the upstream's credential does", async () => {
  const { key } = await here.account();
  await post(PATHS.messages, key, REQUESTS.messages);
  const seen = here.simulator.requests.at(-1);
  const headers = JSON.stringify(seen?.headers);
  assert.ok(!headers.includes(key));
  assert.ok(headers.includes("upstream-canary-messages"));
});
