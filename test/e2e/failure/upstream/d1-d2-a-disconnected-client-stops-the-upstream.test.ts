/**
 * docs/failure-model.md rows D1 and D2, invariant 24: FIN, RST and half-close, before the first byte, in mid-stream,
 * and after the last byte.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { stopwatch } from "../../../rig/stopwatch.ts";
import { memoOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";
import { endOf, requestBytes } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** Invariant 24: measured from the moment that the kernel knows. */
const ABORT_MS_MAX = 1_000;
const WORDS = { text: "word ".repeat(40), deltaChars: 5 };

const WAYS: Readonly<Record<string, (client: RawSocket) => void>> = {
  FIN: (client) => client.close(),
  RST: (client) => client.close(true),
  "a half-close": (client) => client.socket.end(),
};

for (const protocol of PROTOCOL_LIST) {
  for (const [name, leave] of Object.entries(WAYS)) {
    for (const stream of [true, false]) {
      test(`${protocol}, ${stream ? "streamed" : "whole"}: D1, ${name} before the first byte stops the upstream`, async () => {
        const account = await here.account();
        const count = here.simulator.count;
        here.simulator.program({ fault: { stallBeforeHeaders: true } });
        const client = new RawSocket({ port: here.port }).send(requestBytes(protocol, account.key, { stream }));
        await here.simulator.waitFor(count + 1);
        const upstream = here.simulator.requests.at(-1);
        const logged = here.log.length;
        const sinceLeft = stopwatch();
        leave(client);
        assert.equal(await upstream?.finished, "aborted");
        assert.ok(sinceLeft() < ABORT_MS_MAX);
        await here.logged((line) => line.msg === "request" && here.log.indexOf(line) >= logged);
        client.close();
        const state = await here.store.inspect(account.tag);
        assert.deepEqual([state?.account.held, state?.holds, state?.inFlight], [0n, [], 0]);
        assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n);
        const lines = await usageLines(here, account);
        assert.ok(lines.every((line) => line.kind === "absorbed"));
      });
    }

    test(`${protocol}: D2, ${name} in mid-stream stops the upstream, and what came is charged`, async () => {
      const account = await here.account();
      here.simulator.program({ ...WORDS, fault: { stallAfterEvents: 12 } });
      const client = new RawSocket({ port: here.port }).send(requestBytes(protocol, account.key, { stream: true }));
      await client.until((text) => text.split("word ").length > 3);
      const requestId = /x-request-id: (\S+)/i.exec(client.text)?.[1];
      const upstream = here.simulator.requests.at(-1);
      const sinceLeft = stopwatch();
      leave(client);
      assert.equal(await upstream?.finished, "aborted");
      assert.ok(sinceLeft() < ABORT_MS_MAX);
      await here.requestEnd(String(requestId));
      client.close();
      const [line, ...others] = await usageLines(here, account);
      assert.deepEqual(others, []);
      assert.deepEqual([line?.kind, memoOf(line).ended], ["usage", "client_gone"]);
      assert.ok(line && line.amount > 0n && line.amount <= BigInt(memoOf(line).hold as string));
      const state = await here.store.inspect(account.tag);
      assert.deepEqual([state?.account.held, state?.inFlight], [0n, 0]);
    });

    test(`${protocol}: D2, ${name} right after the last byte is a success`, async () => {
      const account = await here.account();
      for (const stream of [true, false]) {
        here.simulator.program(WORDS);
        const client = new RawSocket({ port: here.port }).send(requestBytes(protocol, account.key, { stream }));
        const [reply] = await client.responses(1);
        leave(client);
        assert.equal(reply?.status, 200);
        if (stream) assert.equal(endOf(protocol, reply.body), "complete");
        const line = await here.requestEnd(reply.headers["x-request-id"] as string);
        assert.equal(line.status, 200);
        if (stream) assert.equal(line.stream_end, "complete");
        client.close();
      }
      const lines = await usageLines(here, account);
      assert.deepEqual(
        lines.map((line) => [line.kind, memoOf(line).ended, memoOf(line).counted]),
        [
          ["usage", "complete", "upstream"],
          ["usage", "complete", "upstream"],
        ],
      );
    });
  }
}
