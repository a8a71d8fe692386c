/**
 * docs/failure-model.md rows C2 and C3: silence before the headers costs nothing; silence in mid-stream is filled with
 * heartbeats, then the stream is ended and charged for what came.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { type ByteProxy, startByteProxy } from "../../../rig/byte-proxy.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import {
  ask,
  assertAtRest,
  errorOf,
  framesOf,
  memoOf,
  PROTOCOL_LIST,
  usageLines,
} from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { endOf, withUpstreams } from "./rig.ts";

interface Scene {
  readonly clock: HandClock;
  readonly here: GatewayHere;
  readonly proxy: ByteProxy;
  /** Resolves when the proxy has become silent this many times. */
  silent(times: number): Promise<void>;
}

async function scene(t: TestContext): Promise<Scene> {
  const simulator = await startSimulator();
  const proxy = await startByteProxy(simulator.port);
  const clock = new HandClock();
  const here = await startGatewayHere({ clock, config: withUpstreams({ silent: { url: proxy.url } }) });
  t.after(async () => {
    await here.close();
    await proxy.close();
    await simulator.close();
  });
  simulator.program({ text: "some words ".repeat(20) }, { times: 10 });
  const silent = async (times: number) => {
    while (proxy.faults() < times) await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, here, proxy, silent };
}

for (const protocol of PROTOCOL_LIST) {
  const model = `${protocol}-silent`;

  for (const [stream, limitMs] of [
    [true, 60_000],
    [false, 600_000],
  ] as const) {
    test(`${protocol}: C2, a silent upstream times out after ${stream ? "first_byte" : "whole"}, and nothing is charged`, async (t) => {
      const { clock, here, proxy, silent } = await scene(t);
      const account = await here.account();
      proxy.spoil({ kind: "silence", at: 0 }, 2);
      let answered = false;
      const running = ask(here, protocol, account.key, { model, stream }).finally(() => {
        answered = true;
      });
      await silent(1);
      clock.advance(limitMs - 1);
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      assert.equal(answered, false);
      clock.advance(1);
      const reply = await running;
      assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "upstream_timeout"]);
      await assertAtRest(here, account);
      assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n);
      const lines = await usageLines(here, account);
      assert.ok(lines.every((line) => line.kind === "absorbed"));
    });
  }

  test(`${protocol}: C3, silence in mid-stream brings heartbeats, then one failed end, and a charge for what came`, async (t) => {
    const { clock, here, proxy, silent } = await scene(t);
    const account = await here.account();
    // After some words, in the middle of a frame.
    proxy.spoil({ kind: "silence", at: protocol === "responses" ? 4_000 : 1_300 });
    const reply = await ask(here, protocol, account.key, { model, stream: true });
    await silent(1);
    const reader = reply.body?.getReader();
    assert.ok(reader);
    let text = "";
    const more = async () => {
      const { value, done } = await reader.read();
      text += Buffer.from(value ?? []).toString();
      return !done;
    };
    while (!text.includes("some words")) await more();
    clock.advance(10_000);
    const beats = () =>
      framesOf(text).filter(({ event, data }) =>
        protocol === "chat" ? data.includes('"delta":{}') : event === (protocol === "messages" ? "ping" : "keepalive"),
      ).length;
    const before = beats();
    while (beats() === before) assert.ok(await more(), "the stream ended before its first heartbeat");
    clock.advance(110_000);
    while (await more());
    assert.equal(endOf(protocol, text), "failed");
    assert.match(text, /upstream_timeout/);
    assert.ok(beats() >= 5, `${beats()} heartbeats`);
    await assertAtRest(here, account);
    const [line, ...others] = await usageLines(here, account);
    assert.deepEqual(others, []);
    assert.equal(line?.kind, "usage");
    assert.equal(memoOf(line).counted, "estimate");
    assert.ok(line && line.amount > 0n && line.amount <= BigInt(memoOf(line).hold as string));
  });
}
