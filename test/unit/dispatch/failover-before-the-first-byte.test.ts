/**
 * docs/failure-model.md rows C1, C2, C4, C8 and 69: before the first byte of an answer another upstream may be tried.
 */
import assert from "node:assert/strict";
import test from "node:test";
import {
  ask,
  assertAnswered,
  chunked,
  closedPort,
  fault,
  jsonReply,
  rawServer,
  readRest,
  refusalIn,
  replying,
  rig,
  route,
  SSE_HEAD,
  timeouts,
  upstream,
} from "./rig.ts";

const GOOD_STREAM = `${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: hello\n\n")}0\r\n\r\n`;

const RETRIED: readonly (readonly [string, string])[] = [
  ["408", jsonReply("{}", "408 Request Timeout")],
  ["409", jsonReply("{}", "409 Conflict")],
  ["425", jsonReply("{}", "425 Too Early")],
  ["429", jsonReply("{}", "429 Too Many Requests")],
  ["500", jsonReply("{}", "500 Oops")],
  ["529", jsonReply("{}", "529 Overloaded")],
  ["400, of a model", jsonReply('{"error":{"message":"The model `m` does not exist"}}', "400 Bad Request")],
  ["422, of a model", jsonReply('{"error":{"message":"The model `m` does not exist"}}', "422 Unprocessable")],
  ["401", jsonReply("{}", "401 Unauthorized")],
  ["404", jsonReply("{}", "404 Not Found")],
  ["C8: 204", "HTTP/1.1 204 No Content\r\n\r\n"],
  ["C8: 205", "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n"],
  ["C8: 304", "HTTP/1.1 304 Not Modified\r\n\r\n"],
  [
    "C4: bytes without a type where a stream was requested",
    "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 2\r\n\r\nhi",
  ],
  ["C4: HTML with 200", "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"],
  ["C4: no content-type", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"],
  ["C4: not HTTP", "\x16\x03\x01garbage\r\n\r\n"],
];

for (const [name, reply] of RETRIED) {
  test(`${name} goes to the other upstream`, async (t) => {
    const bad = await replying(t, reply);
    const good = await replying(t, GOOD_STREAM);
    const { dispatcher } = rig(t, [upstream("bad", bad), upstream("good", good)]);
    const result = await dispatcher.run(ask([route("bad"), route("good", { priority: 1 })]));
    assertAnswered(result);
    assert.equal(result.route.upstream, "good");
    // Such a status shows that the upstream has answered nothing, and so that nothing is billed for it.
    assert.equal(result.attempts[0]?.refusedByUpstream, !name.startsWith("C4"));
    assert.deepEqual(
      result.attempts.map(({ upstream, sentToUpstream }) => [upstream, sentToUpstream]),
      [
        ["bad", true],
        ["good", true],
      ],
    );
    assert.deepEqual(await readRest(result), { text: "data: hello\n\n", fault: undefined });
    assert.deepEqual([...dispatcher.inFlight().values()], [0, 0]);
  });
}

for (const type of ["application/json", "text/plain; charset=utf-8"]) {
  test(`C4: the inspector decides whether bytes are a stream, not the type ${type}`, async (t) => {
    const head = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: 2\r\n\r\nhi`;
    const { dispatcher } = rig(t, [upstream("east", await replying(t, head))]);
    const result = await dispatcher.run(ask([route("east")]));
    assertAnswered(result);
    assert.deepEqual(await readRest(result), { text: "hi", fault: undefined });
  });
}

test("C1: a refused connection fails over to the other upstream, and nothing was sent", async (t) => {
  const good = await replying(t, GOOD_STREAM);
  const bad = await closedPort(t);
  const { dispatcher, warnings } = rig(t, [upstream("bad", bad), upstream("good", good)]);
  const result = await dispatcher.run(ask([route("bad"), route("good", { priority: 1 })]));
  assertAnswered(result);
  assert.deepEqual(
    warnings.map(({ kind, reason, asked }) => [kind, reason, asked]),
    [["unreachable", "ECONNREFUSED", `POST ${bad}/chat/completions`]],
    "the warning is logged at once, although the upstream is not ejected yet",
  );
  assert.equal(result.attempts[0]?.outcome, "upstream_unavailable");
  assert.equal(result.attempts[0]?.reason, "ECONNREFUSED");
  assert.equal(result.attempts[0]?.sentToUpstream, false);
  await readRest(result);
});

test("C1: a name that does not resolve is upstream_unavailable", async (t) => {
  const { dispatcher } = rig(t, [upstream("bad", "http://nowhere.invalid/v1")]);
  const result = await dispatcher.run(ask([route("bad")]));
  assert.equal(refusalIn(result).cause, "upstream_unavailable");
});

test("C1: the only upstream is tried once more after a reset, and not a third time", async (t) => {
  let requests = 0;
  const bad = await rawServer(t, ({ socket }) => {
    requests += 1;
    socket.resetAndDestroy();
  });
  const { dispatcher } = rig(t, [upstream("bad", bad)]);
  const result = await dispatcher.run(ask([route("bad")]));
  assert.equal(refusalIn(result).cause, "upstream_unavailable");
  assert.equal(requests, 2);
  assert.equal(result.attempts.length, 2);
});

test("the only upstream is tried once more after an answer that counts as a 5xx", async (t) => {
  for (const status of ["409 Conflict", "425 Too Early", "500 Oops"]) {
    const { dispatcher } = rig(t, [upstream("bad", await replying(t, jsonReply("{}", status)))]);
    const result = await dispatcher.run(ask([route("bad")]));
    assert.equal(refusalIn(result).cause, "upstream_unavailable");
    assert.equal(result.attempts.length, 2, status);
  }
});

test("another model of the same name at the only upstream is tried before the same one again", async (t) => {
  const asked: string[] = [];
  const east = await rawServer(t, ({ socket, text }) => {
    const { model } = JSON.parse(text.slice(text.indexOf("\r\n\r\n"))) as { model: string };
    asked.push(model);
    socket.write(model === "b" ? jsonReply() : jsonReply("{}", "500 Oops"));
  });
  const { dispatcher } = rig(t, [upstream("east", east)]);
  const routes = [route("east", { upstreamModel: "a" }), route("east", { upstreamModel: "b", priority: 1 })];
  const result = await dispatcher.run(ask(routes, { stream: false }));
  assertAnswered(result);
  assert.deepEqual([asked, result.token.model], [["a", "b"], "b"]);
});

test("the only upstream is not tried again after 429 or 401", async (t) => {
  for (const [status, cause] of [
    ["429 Slow", "upstream_rate_limit"],
    ["401 No", "upstream_forbidden"],
  ] as const) {
    const { dispatcher } = rig(t, [upstream("bad", await replying(t, jsonReply("{}", status)))]);
    const result = await dispatcher.run(ask([route("bad")]));
    assert.equal(refusalIn(result).cause, cause);
    assert.equal(result.attempts.length, 1);
  }
});

test("C2: silence before the headers ends a stream at first_byte and fails over", async (t) => {
  const silent = await rawServer(t, () => {});
  const good = await replying(t, GOOD_STREAM);
  const slow = upstream("slow", silent, timeouts({ firstByteMs: 30 }));
  const { dispatcher } = rig(t, [slow, upstream("good", good)]);
  const result = await dispatcher.run(ask([route("slow"), route("good", { priority: 1 })]));
  assertAnswered(result);
  assert.equal(result.attempts[0]?.outcome, "upstream_timeout");
  await readRest(result);
  const alone = await dispatcher.run(ask([route("slow")]));
  assert.equal(refusalIn(alone).cause, "upstream_timeout");
});

test("C2: headers without a body byte do not count as a first byte", async (t) => {
  const silent = await replying(t, `${SSE_HEAD}\r\n`);
  const { dispatcher } = rig(t, [upstream("slow", silent, timeouts({ firstByteMs: 30 }))]);
  const result = await dispatcher.run(ask([route("slow")]));
  assert.equal(refusalIn(result).cause, "upstream_timeout");
  assert.match(result.attempts[0]?.reason ?? "", /no byte/);
});

test("C2: a reply that is not streamed has a time limit of its own, and so do idle and deadline", async (t) => {
  const cases = [
    [timeouts({ wholeMs: 30 }), 20_000, /no whole answer/],
    [timeouts({ idleMs: 30 }), 20_000, /silence/],
    [timeouts({}), 30, /request's time/],
  ] as const;
  for (const [settings, restMs, reason] of cases) {
    const silent = await replying(t, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{");
    const { dispatcher } = rig(t, [upstream("slow", silent, settings)]);
    const result = await dispatcher.run(
      ask([route("slow")], { stream: false, deadlineMs: performance.now() + restMs }),
    );
    assert.equal(refusalIn(result).cause, "upstream_timeout");
    assert.match(result.attempts[0]?.reason ?? "", reason);
    assert.equal(result.attempts.length, 1);
  }
});

test("an error as the first event fails over, a rejected one does not", async (t) => {
  const bad = await replying(t, GOOD_STREAM);
  const { dispatcher } = rig(t, [upstream("bad", bad), upstream("good", await replying(t, GOOD_STREAM))]);
  for (const [cause, attempts] of [
    ["upstream_unavailable", 2],
    ["upstream_rejected", 1],
  ] as const) {
    const result = await dispatcher.run(
      ask([route("bad"), route("good", { priority: 1 })], {
        inspector: { chunk: () => fault(cause, "said so"), end: () => "accept", whole: () => "accept" },
      }),
    );
    assert.equal(refusalIn(result).cause, cause);
    assert.equal(result.attempts.length, attempts);
  }
});

test("nothing is retried once the first byte is accepted", async (t) => {
  let requests = 0;
  const bad = await rawServer(t, ({ socket }) => {
    requests += 1;
    socket.write(`${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: a\n\n")}`, () => socket.destroy());
  });
  const { dispatcher } = rig(t, [upstream("bad", bad)]);
  const result = await dispatcher.run(ask([route("bad")]));
  assertAnswered(result);
  const rest = await readRest(result);
  assert.equal(rest.text, "data: a\n\n");
  assert.equal(rest.fault?.cause, "upstream_unavailable");
  assert.equal(requests, 1);
});

test("C8: 102 and 103 are skipped", async (t) => {
  const early = `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${GOOD_STREAM}`;
  const { dispatcher } = rig(t, [upstream("east", await replying(t, early))]);
  const result = await dispatcher.run(ask([route("east")]));
  assertAnswered(result);
  assert.equal(result.status, 200);
  assert.equal((await readRest(result)).text, "data: hello\n\n");
});

test("69: a redirect is never followed", async (t) => {
  let visited = false;
  const target = await rawServer(t, () => {
    visited = true;
  });
  const bad = await replying(t, `HTTP/1.1 302 Found\r\nlocation: ${target}\r\ncontent-length: 0\r\n\r\n`);
  const { dispatcher } = rig(t, [upstream("bad", bad)]);
  const result = await dispatcher.run(ask([route("bad")]));
  assert.equal(refusalIn(result).cause, "upstream_unavailable");
  assert.equal(visited, false);
});
