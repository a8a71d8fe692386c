/**
 * Metrics and the admin API show which upstreams are ejected, how many requests wait, and the outcomes of recent
 * attempts.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { runCli } from "../../../../src/cli/cli.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest } from "./asking.ts";
import { HandClock } from "./hand-clock.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    // An ejection, and the pause of a rate limit, last until a test has looked at them.
    clock: new HandClock(),
    config: (places) =>
      testConfig(places, {
        upstreams: {
          lost: { protocol: "chat", base_url: new URL(places.upstreamUrl).origin },
          "up-messages": { max_concurrency: 1 },
        },
        models: {
          "chat-lost": {
            plans: ["free"],
            price: { input: "1", output: "10" },
            context_tokens: 200000,
            routes: [{ upstream: "lost" }],
          },
          "responses-1": { routes: [{ upstream: "up-responses" }, { upstream: "up-chat", priority: 1 }] },
        },
      }),
  });
});
after(() => here.close());

async function tollgate(...argv: string[]): Promise<string> {
  let out = "";
  const unexpected = () => Promise.reject(new Error("not expected to run"));
  const status = await runCli(argv, {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (out += text) },
    env: { TOLLGATE_ADMIN_URL: here.adminUrl, TOLLGATE_ADMIN_TOKEN: here.gateway.adminToken },
    fetch,
    serve: unexpected,
    check: unexpected,
  });
  assert.equal(status, 0, out);
  return out;
}

interface Shown {
  readonly name: string;
  readonly health: string;
  readonly reason: string | null;
  readonly rest_seconds: number;
  readonly in_flight: number;
  readonly max_concurrency: number;
  readonly queued: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly limited_models: readonly { readonly model: string; readonly rest_seconds: number }[];
}

async function shown(name: string): Promise<Shown> {
  const { items } = JSON.parse(await tollgate("--json", "upstreams")) as { items: Shown[] };
  const found = items.find((item) => item.name === name);
  assert.ok(found);
  return found;
}

async function metrics(): Promise<string> {
  return (await fetch(`${here.adminUrl}/metrics`)).text();
}

test("a refused credential shows in log, metrics, admin API and command line", async () => {
  const account = await here.account();
  assert.match(await metrics(), /tollgate_upstream_healthy\{upstream="up-responses"\} 1/);
  here.simulator.program({ fault: { status: 401 } });
  const reply = await ask(here, "responses", account.key);
  assert.equal(reply.status, 200, await reply.text());
  await assertAtRest(here, account);
  await here.logged((line) => line.msg === "an upstream needs the operator" && line.kind === "forbidden");
  await here.logged((line) => line.msg === "an upstream is ejected" && line.upstream === "up-responses");
  const page = await metrics();
  assert.match(page, /tollgate_upstream_healthy\{upstream="up-responses"\} 0/);
  assert.match(page, /tollgate_upstream_healthy\{upstream="up-chat"\} 1/);
  assert.match(page, /tollgate_upstream_ejections_total\{upstream="up-responses",reason="forbidden"\} 1/);
  const { health, reason, rest_seconds: rest, outcomes } = await shown("up-responses");
  assert.deepEqual([health, reason, outcomes.forbidden], ["ejected", "forbidden", 1]);
  assert.ok(rest >= 1 && rest <= 6, `${rest}`);
  assert.match(await tollgate("upstreams"), /^up-responses +ejected +forbidden +[1-6] +0\/200 +0 +0 +0 +0 +0 +1 +0$/m);
  assert.doesNotMatch(await tollgate("upstreams"), /canary/);
});

test("a base_url without its /v1 shows in the table, and in the log once", async () => {
  const account = await here.account();
  for (let i = 0; i < 3; i++) {
    const reply = await ask(here, "chat", account.key, { model: "chat-lost" });
    assert.equal(reply.status, 403);
    assert.match(await reply.text(), /upstream_unavailable/);
  }
  await assertAtRest(here, account);
  const said = here.log.filter((line) => line.upstream === "lost" && line.msg === "an upstream needs the operator");
  assert.equal(said.length, 1);
  assert.match(String(said[0]?.asked), /^POST http:\/\/127\.0\.0\.1:\d+\/chat\/completions$/);
  assert.deepEqual([said[0]?.status, /base_url/.test(String(said[0]?.look_at))], [404, true]);
  const text = await tollgate("upstreams");
  assert.match(text, /^lost +healthy +- +0 +0\/200 +0 +0 +0 +0 +0 +0 +3$/m);
  assert.match(text, /upstream's health\.window/);
});

test("a queued request shows, is served in turn, and its wait is measured", async () => {
  const account = await here.account();
  here.simulator.hold();
  const before = here.simulator.count;
  const first = ask(here, "messages", account.key);
  await here.simulator.waitFor(before + 1);
  const second = ask(here, "messages", account.key);
  // The second one is queued after its admission; from outside this is visible only by polling.
  let state = await shown("up-messages");
  while (state.queued === 0) state = await shown("up-messages");
  assert.deepEqual([state.in_flight, state.max_concurrency, state.queued], [1, 1, 1]);
  assert.match(await metrics(), /tollgate_queued\{upstream="up-messages"\} 1/);
  here.simulator.release();
  assert.deepEqual([(await first).status, (await second).status], [200, 200]);
  await assertAtRest(here, account);
  const page = await metrics();
  assert.match(page, /tollgate_queued\{upstream="up-messages"\} 0/);
  assert.match(page, /tollgate_queue_wait_seconds_count\{upstream="up-messages"\} 1/);
});

test("a rate limit shows with the model and the pause that the upstream requested", async () => {
  const account = await here.account();
  here.simulator.program({ fault: { status: 429, retryAfter: 17 } });
  const reply = await ask(here, "chat", account.key);
  assert.deepEqual([reply.status, reply.headers.get("retry-after")], [429, "17"]);
  const { health, outcomes, limited_models: limited } = await shown("up-chat");
  assert.deepEqual([health, outcomes.rate_limited, limited[0]?.model], ["healthy", 1, "chat-1"]);
  assert.match(
    await tollgate("upstreams", "--format", "csv"),
    /^name,health,reason,[^\n]*\r\n(?:[^\n]*\r\n)*up-chat,healthy,/,
  );
  assert.match(await tollgate("upstreams"), /^up-chat: chat-1 is not used for another 17 s \(429\)\.$/m);
  // It is the only upstream with the model, so it is called all the same.
  assert.equal((await ask(here, "chat", account.key)).status, 200);
});
