/**
 * docs/failure-model.md row B3 and docs/api.md: only a request that charges nothing and has an idempotency key waits for
 * the store before its answer ends. On a clock that stands still, any other answer that waited would never end.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { testConfig } from "../../../rig/config.ts";
import { startFaultProxy } from "../../../rig/fault-proxy.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { ask } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";

const NAMED = { "idempotency-key": "order-1" };
/** As in `settlement.ts`. */
const KEY_FREE_MS_MAX = 400;

type Program = Parameters<GatewayHere["simulator"]["program"]>[0];

const ENDS: readonly (readonly [what: string, Program, stream: boolean, headers: Record<string, string>, RegExp])[] = [
  ["a charged stream with a key", {}, true, NAMED, /\[DONE\]/],
  ["a charged answer with a key", {}, false, NAMED, /"usage"/],
  ["a stream that breaks off uncharged, without a key", { fault: { resetAfterEvents: 1 } }, true, {}, /"error"/],
  ["a rejected request without a key", { fault: { status: 400 } }, false, {}, /upstream_rejected/],
];

test("ends that free no key are sent while the store does not answer, and one that frees a key after 0.4 seconds", async (t) => {
  const redis = await startRedis();
  const proxy = await startFaultProxy(redis.port);
  const clock = new HandClock();
  const config = (places: Parameters<typeof testConfig>[0]) => testConfig(places, { idempotency: { enabled: true } });
  const here = await startGatewayHere({ config, store: proxy.url, storeTimes: PATIENT, clock });
  t.after(async () => {
    proxy.blackHole(false);
    await here.close();
    await proxy.close();
    await redis.stop();
  });

  /** The answer to a request whose store stops answering as soon as the upstream has the request. */
  async function endWithoutStore(
    program: Program,
    stream: boolean,
    headers: Record<string, string>,
  ): Promise<Response> {
    const account = await here.account({ usd: "1000" });
    here.simulator.program(program);
    here.simulator.hold();
    const sent = here.simulator.count;
    const asked = ask(here, "chat", account.key, { stream }, { headers });
    while (here.simulator.count === sent) await new Promise((resolve) => setImmediate(resolve));
    proxy.blackHole(true);
    here.simulator.release();
    return asked;
  }

  for (const [what, program, stream, headers, expected] of ENDS) {
    const reply = await endWithoutStore(program, stream, headers);
    assert.match(await reply.text(), expected, what);
    proxy.blackHole(false);
    await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  }

  const waits = clock.nextTimerOf(KEY_FREE_MS_MAX).then(() => "waits");
  const answer = endWithoutStore({ fault: { status: 400 } }, false, NAMED);
  assert.equal(await Promise.race([waits, answer.then(() => "answered")]), "waits");
  clock.advance(KEY_FREE_MS_MAX);
  assert.match(await (await answer).text(), /upstream_rejected/);
});
