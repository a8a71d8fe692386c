/** docs/failure-model.md row C4: a whole reply that would take seconds to parse is no answer; long ones of other kinds are. */
import assert from "node:assert/strict";
import test from "node:test";
import { isFault } from "../../../../src/convert/exchange.ts";
import { StreamOrWhole } from "../../../../src/convert/whole-as-stream.ts";
import { parseObject } from "../../../../src/values/json-object.ts";
import { exchangeOf, routeOf, smallBody } from "../translate/rig.ts";

const TOO_MANY = "the reply has too many names";

const list = (count: number, one: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => one(at)).join(",");

function answer(message: string, more = ""): Buffer {
  const choice = `{"index":0,"message":{"role":"assistant","content":"a"${message}},"finish_reason":"stop"${more}}`;
  return Buffer.from(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[${choice}]}`);
}

/** Each way in which a whole reply is read, and the fault that it ends in. */
const READ = {
  "in its own protocol": (body: Buffer) => reasonOf(exchangeOf("chat", smallBody("chat"), routeOf("chat")).whole(body)),
  translated: (body: Buffer) => reasonOf(exchangeOf("messages", smallBody("messages"), routeOf("chat")).whole(body)),
  "in place of a stream": (body: Buffer) => {
    const exchange = exchangeOf("chat", smallBody("chat", { stream: true }), routeOf("chat"));
    const stream = new StreamOrWhole("chat", exchange.stream());
    stream.push(body);
    stream.end();
    return stream.fault?.reason;
  },
};

function reasonOf(reply: object): string | undefined {
  return isFault(reply as never) ? (reply as { reason: string }).reason : undefined;
}

for (const [way, read] of Object.entries(READ)) {
  test(`${way}: a reply of many different names is refused, also below the top`, () => {
    const input = `{${list(60_000, (at) => `"name${at}":0`)}}`;
    assert.equal(read(answer(`,"unheard_of":[${input}]`)), TOO_MANY);
    assert.equal(read(answer(`,"unheard_of":[${list(60_000, (at) => `{"name${at}":0}`)}]`)), TOO_MANY);
  });

  test(`${way}: a reply of more than a million names is refused, though they are the same`, () => {
    assert.equal(read(answer(`,"unheard_of":[${list(1_200_001, () => '{"a":0}')}]`)), TOO_MANY);
  });
}

test("the probabilities of a long answer, a large input and a text like names are read", () => {
  const top = list(20, (at) => `{"token":"t${at}","logprob":-${at}.5,"bytes":[116]}`);
  const tokens = list(16_384, (at) => `{"token":"w${at}","logprob":-0.5,"bytes":[119],"top_logprobs":[${top}]}`);
  const probable = answer("", `,"logprobs":{"content":[${tokens}]}`);
  const named = answer(
    `,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(
      `{${list(50_000, (at) => `"name${at}":0`)}}`,
    )}}}]`,
  );
  const wide = answer(`,"unheard_of":{${list(49_000, (at) => `"a longer name of a member, number ${at}":0`)}}`);
  for (const body of [probable, named, wide]) {
    assert.ok(body.length > 512 * 1024 && parseObject(body.toString()));
    for (const [way, read] of Object.entries(READ)) assert.notEqual(read(body), TOO_MANY, way);
    assert.equal(READ["in its own protocol"](body), undefined);
  }
});

test("its fault has the count of its server, which need not be parsed with the rest", () => {
  const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
  const text = answer(`,"unheard_of":[${list(60_000, (at) => `{"name${at}":0}`)}]`).toString();
  const body = Buffer.from(`${text.slice(0, -1)},"usage":${JSON.stringify(usage)}}`);
  for (const client of ["chat", "messages"] as const) {
    const fault = exchangeOf(client, smallBody(client), routeOf("chat")).whole(body);
    assert.ok(isFault(fault) && fault.reason === TOO_MANY && fault.canBeAskedFor);
    assert.deepEqual([fault.usage?.input, fault.usage?.output], [7, 5]);
  }
  const cut = exchangeOf("chat", smallBody("chat"), routeOf("chat")).whole(body.subarray(0, -40));
  assert.ok(isFault(cut) && cut.reason === TOO_MANY && cut.usage === undefined);
});
