import assert from "node:assert/strict";
import test from "node:test";
import { exchange, RawSocket } from "../../rig/raw-socket.ts";
import { echo as answer, causeOf, request, startEcho } from "./echo.ts";

test("row 78: an exception is 500 with the request id and without a stack", async (t) => {
  const echo = await startEcho(t, {}, () => {
    throw new Error("canary");
  });
  const [response] = await exchange(echo.target, request({}));
  assert.equal(response?.status, 500);
  assert.equal(causeOf(response.body), "internal");
  assert.equal(JSON.parse(response.body).request_id, response.headers["x-request-id"]);
  assert.doesNotMatch(response.body, /canary|\.ts/);
  assert.equal(echo.crashes.length, 1);
});

test("row 78: a promise rejected in the middle of a stream cuts only that stream", async (t) => {
  let calls = 0;
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    calls += 1;
    if (calls > 1) return answer(accepted, reply);
    reply.open(200, {});
    reply.write(Buffer.from("data: 1\n\n"));
    throw new Error("canary");
  });
  const [cut] = await new RawSocket(echo.target).send(request({})).responsesUntilClosed();
  assert.notEqual(cut?.complete, true);
  const [next] = await exchange(echo.target, request({}));
  assert.equal(next?.status, 200);
  assert.equal(echo.crashes.length, 1);
});

test("a second answer to one request is a defect and never reaches the client", async (t) => {
  const echo = await startEcho(t, {}, (_accepted, reply) => {
    reply.whole(200, {}, Buffer.from("one"));
    reply.whole(200, {}, Buffer.from("two"));
  });
  const [response] = await exchange(echo.target, request({}));
  assert.equal(response?.body, "one");
  assert.equal(echo.crashes.length, 1);
});

test("a handler that does not answer is a defect: the client gets a 500 and does not hang", async (t) => {
  const echo = await startEcho(t, {}, async () => {});
  const [response] = await exchange(echo.target, request({}));
  assert.equal(response?.status, 500);
});
