/**
 * docs/failure-model.md rows C1, C3, C4 and C6, ARCHITECTURE.md promises 3 and 8, invariant 21: an answer that is cut,
 * or corrupted, at any byte.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { type ByteFault, type ByteProxy, startByteProxy } from "../../../rig/byte-proxy.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { chargeOf, endOf, withUpstreams } from "./rig.ts";

const simulator = await startSimulator();
let proxy: ByteProxy;
let here: GatewayHere;
before(async () => {
  proxy = await startByteProxy(simulator.port);
  here = await startGatewayHere({ config: withUpstreams({ spoiled: { url: proxy.url } }) });
});
afterEach(() => {
  proxy.clear();
  simulator.clearPrograms();
});
after(async () => {
  await here.close();
  await proxy.close();
  await simulator.close();
});

/** Both attempts of a request hit the fault. */
const TRIES = 2;
const REPLY = { text: "some words and more ".repeat(4), deltaChars: 20 };
/** Longer than any answer of these tests. */
const BYTES_MAX = 6_000;
const STEP = 97;

const FAULTS: readonly ((at: number) => ByteFault)[] = [
  (at) => ({ kind: "end", at }),
  (at) => ({ kind: "reset", at }),
  (at) => ({ kind: "half_close", at }),
  (at) => ({ kind: "corrupt", at, bytes: Buffer.from([0xff, 0x00, 0x0d, 0x0a, 0x0a, 0x7b]) }),
];

for (const protocol of PROTOCOL_LIST) {
  for (const stream of [true, false]) {
    const name = `${protocol}, ${stream ? "streamed" : "whole"}`;
    const model = `${protocol}-spoiled`;

    for (const faultAt of FAULTS) {
      test(`${name}: ${faultAt(0).kind} at any byte gives one proper end or a refusal, and at most one charge`, async () => {
        const seen = new Set<string>();
        for (let at = 0; at < BYTES_MAX; at += STEP) {
          const account = await here.account();
          const before = proxy.faults();
          proxy.spoil(faultAt(at), TRIES);
          simulator.program(REPLY, { times: TRIES });
          const reply = await ask(here, protocol, account.key, { model, stream });
          simulator.clearPrograms();
          proxy.clear();
          const outcome = stream && reply.status === 200 ? endOf(protocol, await reply.text()) : String(reply.status);
          if (reply.status !== 200) {
            assert.match((await errorOf(reply)).cause, /^upstream_(unavailable|invalid)$/);
            assert.equal(reply.status, 403);
          } else if (!stream) {
            JSON.parse(await reply.text());
          }
          assert.notEqual(outcome, "none", `${at}: a stream without an end`);
          await assertAtRest(here, account);
          const charged = await chargeOf(here, account);
          if (reply.status !== 200) assert.equal(charged, 0n, `${at}: nothing was delivered`);
          else assert.ok(outcome === "failed" || charged > 0n, `${at}: an answer is charged`);
          seen.add(outcome);
          // After the end of the answer there is nothing left to corrupt.
          if (proxy.faults() === before) break;
        }
        assert.ok(seen.has("403"), [...seen].join());
        assert.ok(seen.has(stream ? "complete" : "200"), [...seen].join());
        if (stream) assert.ok(seen.has("failed"), [...seen].join());
      });
    }

    test(`${name}: an answer that arrives byte by byte is a complete answer`, async () => {
      const account = await here.account();
      simulator.program(REPLY, { times: 2 });
      const plain = await (await ask(here, protocol, account.key, { model, stream })).text();
      proxy.spoil({ kind: "trickle" });
      const trickled = await (await ask(here, protocol, account.key, { model, stream })).text();
      assert.equal(trickled, plain);
      await assertAtRest(here, account);
    });
  }
}
