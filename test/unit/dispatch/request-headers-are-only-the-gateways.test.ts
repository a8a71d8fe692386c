/** docs/failure-model.md row 74: an upstream gets only headers that the gateway sets. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Protocol } from "../../../src/values/protocol.ts";
import { Secret } from "../../../src/values/secret.ts";
import { ask, assertAnswered, jsonReply, rawServer, rig, route, UPSTREAM_KEY, upstream } from "./rig.ts";

async function sentBy(
  t: test.TestContext,
  protocol: Protocol,
  { stream = false, pathSuffix }: { stream?: boolean; pathSuffix?: string } = {},
): Promise<string[]> {
  let text = "";
  const base = await rawServer(t, (request) => {
    text = request.text;
    request.socket.write(jsonReply());
  });
  const headers = new Map([
    ["X-Team", new Secret("blue")],
    ["Content-Length", new Secret("1")],
    ["Transfer-Encoding", new Secret("chunked")],
    ["Host", new Secret("evil")],
  ]);
  const { dispatcher } = rig(t, [upstream("east", `${base}/?api=2`, { protocol, headers, maxConcurrency: 1 })]);
  const result = await dispatcher.run(
    ask([route("east", {}, protocol)], {
      stream,
      pathSuffix,
      headers: [
        ["Authorization", "Bearer sk-client"],
        ["x-api-key", "sk-client"],
        ["cookie", "a=b"],
        ["Expect", "100-continue"],
        ["baggage", "a=b"],
        ["Anthropic-Beta", "one"],
        ["traceparent", "00-1-2-01\r\nx-evil: 1"],
      ],
    }),
  );
  if (!stream) assertAnswered(result);
  return text.split("\r\n");
}

const COMMON = [
  "connection: keep-alive",
  "content-type: application/json",
  "accept-encoding: identity",
  "user-agent: tollgate",
  "x-team: blue",
  "content-length: 19",
  "",
  '{"model":"model-1"}',
];

const EXPECTED: Readonly<Record<Protocol, readonly string[]>> = {
  chat: ["POST /v1/chat/completions?api=2 HTTP/1.1", `authorization: Bearer ${UPSTREAM_KEY}`],
  responses: ["POST /v1/responses?api=2 HTTP/1.1", `authorization: Bearer ${UPSTREAM_KEY}`],
  messages: [
    "POST /v1/messages?api=2 HTTP/1.1",
    `x-api-key: ${UPSTREAM_KEY}`,
    "anthropic-version: 2023-06-01",
    "anthropic-beta: one",
  ],
};

for (const protocol of ["chat", "responses", "messages"] as const) {
  test(`${protocol}: exactly the gateway's own headers, in one case`, async (t) => {
    const lines = (await sentBy(t, protocol)).filter((line) => !line.startsWith("host: 127.0.0.1:"));
    assert.deepEqual(lines.toSorted(), [...EXPECTED[protocol], "accept: application/json", ...COMMON].toSorted());
  });
}

test("a stream asks for text/event-stream", async (t) => {
  assert.ok((await sentBy(t, "chat", { stream: true })).includes("accept: text/event-stream"));
});

test("the suffix of a side endpoint follows the protocol's path and precedes the query of the base URL", async (t) => {
  const [line] = await sentBy(t, "messages", { pathSuffix: "/count_tokens" });
  assert.equal(line, "POST /v1/messages/count_tokens?api=2 HTTP/1.1");
});

test("a body of any length is sent completely, with its length before it", async (t) => {
  const texts: string[] = [];
  const base = await rawServer(t, (request) => {
    texts.push(request.text);
    request.socket.write(jsonReply());
  });
  const { dispatcher } = rig(t, [upstream("east", base, { maxConcurrency: 1 })]);
  for (const stream of [false, true]) {
    for (const bytes of [16_384, 16_385, 65_536, 65_537, 131_072, 200_000]) {
      const body = Buffer.from(Array.from({ length: bytes }, (_, i) => 97 + (i % 23)));
      await dispatcher.run(
        ask([route("east")], { stream, encodeFor: () => ({ body, token: { chunks: [], model: "m" } }) }),
      );
      const [head = "", sent = ""] = texts.pop()?.split("\r\n\r\n") ?? [];
      assert.match(head, new RegExp(`\r\ncontent-length: ${bytes}(\r|$)`));
      assert.doesNotMatch(head, /transfer-encoding/i);
      assert.ok(sent === body.toString(), `${bytes} bytes`);
    }
  }
});
