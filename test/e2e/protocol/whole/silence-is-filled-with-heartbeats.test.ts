/**
 * ARCHITECTURE.md promise 8: after each ten seconds of silence after the first event the client gets a heartbeat in its
 * protocol's own form.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, framesOf, PROTOCOL_LIST } from "./asking.ts";
import { HandClock } from "./hand-clock.ts";

const HEARTBEAT_MS = 10_000;
/**
 * Hidden thinking may have happened in the silence: for this long the upstream is read for its count after the client
 * disconnects.
 */
const CLIENT_GONE_GRACE_MS = 10_000;
/** How often the gateway checks a stream that it keeps reading. */
const READ_ON_LOOK_MS = 250;

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: one heartbeat every ten seconds, none earlier, never only a comment`, async () => {
    const clock = new HandClock();
    const here = await startGatewayHere({ clock });
    try {
      const account = await here.account();
      here.simulator.program({ text: "some words ".repeat(20), fault: { stallAfterEvents: 5 } });
      const leaving = new AbortController();
      const reply = await ask(here, protocol, account.key, { stream: true }, { signal: leaving.signal });
      const reader = reply.body?.getReader();
      assert.ok(reader);
      let text = "";
      const frames = () => framesOf(text.slice(0, text.lastIndexOf("\n\n") + 2));
      const until = async (count: number) => {
        while (frames().length < count) {
          const { value, done } = await reader.read();
          if (done) break;
          text += Buffer.from(value).toString();
        }
      };
      await until(5);
      clock.advance(HEARTBEAT_MS - 1);
      clock.advance(1);
      await until(6);
      clock.advance(HEARTBEAT_MS);
      await until(7);
      assert.equal(frames().length, 7, "one for each ten seconds");
      const first = JSON.parse(frames()[0]?.data ?? "") as { id: string; model: string };
      for (const beat of frames().slice(5)) {
        const payload = JSON.parse(beat.data) as Record<string, unknown>;
        if (protocol === "chat") {
          assert.equal(payload.id, first.id);
          assert.equal(payload.model, first.model);
          assert.equal(payload.object, "chat.completion.chunk");
          assert.deepEqual(payload.choices, [{ index: 0, delta: {}, finish_reason: null }]);
        } else if (protocol === "messages") {
          assert.deepEqual([beat.event, payload], ["ping", { type: "ping" }]);
        } else {
          assert.equal(beat.event, "keepalive");
          assert.deepEqual(Object.keys(payload), ["type", "sequence_number"]);
        }
      }
      const readOn = clock.timerOf(READ_ON_LOOK_MS);
      leaving.abort();
      await readOn;
      clock.advance(CLIENT_GONE_GRACE_MS);
      await assertAtRest(here, account);
    } finally {
      await here.close();
    }
  });

  test(`${protocol}: if the upstream stays silent, the attempt ends, and the stream ends as failed`, async () => {
    const clock = new HandClock();
    const here = await startGatewayHere({ clock });
    try {
      const account = await here.account();
      here.simulator.program({ text: "some words ".repeat(20), fault: { stallAfterEvents: 5 } });
      const reply = await ask(here, protocol, account.key, { stream: true });
      const reader = reply.body?.getReader();
      let text = "";
      while (!text.includes("some words")) text += Buffer.from((await reader?.read())?.value ?? []).toString();
      // The default of `timeouts.idle` is 120 s; heartbeats are sent until then.
      clock.advance(130_000);
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        text += Buffer.from(piece.value).toString();
      }
      assert.ok(text.includes("upstream_timeout"), text.slice(-300));
      await assertAtRest(here, account);
    } finally {
      await here.close();
    }
  });

  test(`${protocol}: if no headers come in time, the answer is an HTTP error`, async () => {
    const clock = new HandClock();
    const here = await startGatewayHere({ clock });
    try {
      const account = await here.account();
      here.simulator.program({ fault: { stallBeforeHeaders: true } });
      const before = here.simulator.count;
      const asked = ask(here, protocol, account.key, { stream: true });
      await here.simulator.waitFor(before + 1);
      clock.advance(60_000);
      const reply = await asked;
      assert.equal(reply.status, 403);
      assert.ok((await reply.text()).includes("upstream_timeout"));
      assert.equal(await here.simulator.requests.at(-1)?.finished, "aborted");
      await assertAtRest(here, account);
      assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n);
    } finally {
      await here.close();
    }
  });
}
