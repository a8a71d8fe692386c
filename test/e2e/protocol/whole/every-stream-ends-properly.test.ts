/**
 * ARCHITECTURE.md promise 8: whatever the upstream does after its first byte, the client's stream ends properly in its
 * own protocol.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { type Fault, type Simulator, startSimulator } from "../../../../src/simulator/server.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, framesOf, PROTOCOL_LIST, usageLines } from "./asking.ts";

let here: GatewayHere;
let second: Simulator;
before(async () => {
  second = await startSimulator();
  here = await startGatewayHere({ config: withSecondRoute });
});
afterEach(() => here.simulator.clearPrograms());
after(async () => {
  await here.close();
  await second.close();
});

/** In addition to the usual models one per protocol, `chat-two` and so on, that a second upstream serves too. */
function withSecondRoute(places: ConfigPlaces): string {
  const upstreams = PROTOCOL_LIST.map(
    (protocol) => [`second-${protocol}`, { protocol, base_url: second.url }] as const,
  );
  const models = PROTOCOL_LIST.map((name) => {
    // A weight of nearly zero: the first upstream is tried first.
    const routes = [
      { upstream: `up-${name}`, weight: 1000000 },
      { upstream: `second-${name}`, weight: 1 },
    ];
    return [`${name}-two`, { ...TWO, routes }] as const;
  });
  return testConfig(places, { upstreams: Object.fromEntries(upstreams), models: Object.fromEntries(models) });
}

const TWO = { plans: ["free"], price: { input: "1", output: "10" }, context_tokens: 200000 };

/** Asserts the single proper end of a failed stream, and that nothing reads as success. */
function assertFailedEnd(protocol: Protocol, text: string): void {
  const frames = framesOf(text).filter((frame) => frame.data !== "");
  const last = frames.at(-1);
  const payload = JSON.parse(last?.data ?? "") as Record<string, never> & { error?: Record<string, string> };
  if (protocol === "chat") {
    assert.ok(!text.includes("[DONE]"));
    assert.equal(payload.error?.type, "server_error");
    assert.ok(payload.error.message && payload.error.cause && payload.error.remedy);
  } else if (protocol === "messages") {
    assert.ok(!text.includes("message_stop"));
    assert.equal(last?.event, "error");
    assert.equal(payload.error?.type, "overloaded_error");
  } else {
    assert.ok(!text.includes("response.completed"));
    assert.equal(last?.event, "response.failed");
    const created = JSON.parse(frames[0]?.data ?? "") as { response: { id: string } };
    const failed = payload as unknown as {
      sequence_number: number;
      response: { id: string; status: string; error: object };
    };
    assert.equal(failed.response.id, created.response.id);
    assert.equal(failed.response.status, "failed");
    const error = frames.at(-2);
    assert.equal(error?.event, "error");
    const numbers = frames.map((frame) => (JSON.parse(frame.data) as { sequence_number: number }).sequence_number);
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
    );
    assert.equal(new Set(numbers).size, numbers.length);
  }
}

const FAULTS: readonly [string, Fault][] = [
  ["ends without a terminal event", { endAfterEvents: 6 }],
  ["resets the connection", { resetAfterEvents: 6 }],
  ["sends garbage", { garbageAfterEvents: 6 }],
  ["sends half a frame and ends", { garbageAfterEvents: { n: 6, text: 'data: {"half' } }],
  ["reports an error", { errorEventAfter: { n: 6, type: "api_error", message: "secret upstream words" } }],
  ["reports an overload", { errorEventAfter: { n: 6, type: "overloaded_error" } }],
  ["sends an event over the limit", { hugeEvent: 5 * 1024 * 1024 }],
];

for (const protocol of PROTOCOL_LIST) {
  for (const [name, fault] of FAULTS) {
    test(`${protocol}: the upstream ${name} in mid-stream`, async () => {
      const account = await here.account();
      here.simulator.program({ text: "a few words ".repeat(20), fault });
      const reply = await ask(here, protocol, account.key, { stream: true });
      assert.equal(reply.status, 200);
      const text = await reply.text();
      assertFailedEnd(protocol, text);
      assert.ok(!text.includes("secret upstream words"));
      await assertAtRest(here, account);
      for (const line of await usageLines(here, account)) assert.ok(line.amount >= 0n);
    });
  }

  test(`${protocol}: events after the terminal event are dropped`, async () => {
    const account = await here.account();
    const reply = await ask(here, protocol, account.key, { stream: true });
    const good = await reply.text();
    const frames = framesOf(good).map(({ event, data }) => (event === undefined ? { data } : { event, data }));
    here.simulator.program({ frames: [...frames, ...frames] });
    const doubled = await ask(here, protocol, account.key, { stream: true });
    const text = await doubled.text();
    const terminal = { chat: "[DONE]", messages: '"message_stop"', responses: '"response.completed"' }[protocol];
    assert.equal(text.split(terminal).length, 2);
    await assertAtRest(here, account);
  });

  for (const [name, fault] of [
    ["an error event", { errorEventAfter: { n: 0, type: "overloaded_error" } }],
    ["status 500", { status: 500 }],
    ["status 529", { status: 529 }],
    ["status 429", { status: 429, retryAfter: 3 }],
    ["status 401", { status: 401 }],
    ["a reset before its headers", { resetBeforeHeaders: true }],
    ["a page of HTML", { html: true }],
    ["an error in a 200", { jsonErrorIn200: true }],
    ["a redirect", { status: 302, headers: { location: "http://127.0.0.1:6379/" } }],
  ] as const satisfies readonly [string, Fault][]) {
    for (const stream of [true, false]) {
      const how = stream ? "streamed" : "whole";
      test(`${protocol}, ${how}: if the first upstream answers with ${name}, the other one answers, or the client gets an HTTP error`, async () => {
        const account = await here.account();
        here.simulator.program({ fault }, { times: Infinity });
        const asked = second.count;
        const saved = await ask(here, protocol, account.key, { model: `${protocol}-two`, stream });
        // An error event exists in streams only; the simulator's whole reply is then a good one.
        const strikes = stream || !("errorEventAfter" in fault);
        assert.equal(saved.status, 200);
        await saved.text();
        assert.equal(second.count, asked + (strikes ? 1 : 0));
        await assertAtRest(here, account);
        if (!strikes) return;
        const alone = await ask(here, protocol, account.key, { stream });
        const { cause } = await errorOf(alone);
        const expected = {
          "status 429": [429, "upstream_rate_limit"],
          "status 401": [403, "upstream_forbidden"],
        } as const;
        const [status, wanted] = expected[name as keyof typeof expected] ?? [403, undefined];
        assert.equal(alone.status, status);
        if (wanted) assert.equal(cause, wanted);
        if (status === 429) assert.equal(alone.headers.get("retry-after"), "3");
        assert.equal(alone.headers.get("location"), null);
        assert.equal(alone.headers.get("x-tollgate-origin"), "upstream");
        await assertAtRest(here, account);
        const charged = (await usageLines(here, account)).filter((line) => line.kind === "usage");
        assert.equal(charged.length, 1, "only the answered request is charged");
      });
    }
  }
}

// Not on responses: its terminal event carries the response itself, and without it nothing is complete.
for (const protocol of ["chat", "messages"] as const) {
  test(`${protocol}: a stream that lacks only its last marker is complete`, async () => {
    const account = await here.account();
    here.simulator.program({ fault: { noTerminal: true } });
    const reply = await ask(here, protocol, account.key, { stream: true });
    const text = await reply.text();
    assert.ok(text.trimEnd().endsWith(protocol === "chat" ? "data: [DONE]" : '{"type":"message_stop"}'));
    await assertAtRest(here, account);
  });
}
