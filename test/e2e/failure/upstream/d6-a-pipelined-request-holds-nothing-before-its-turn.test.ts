/**
 * docs/failure-model.md row D6: a request pipelined after a running stream is not admitted, and holds no money, until
 * the stream has ended.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { ask, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { endOf, requestBytes } from "./rig.ts";

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: one hold while the stream runs, and both answers in order`, async () => {
    const here = await startGatewayHere();
    try {
      const account = await here.account();
      const other = await here.account();
      const both = ["first", "second"].map((word) => {
        const prompt = `simulate: {"text":"${word}"}`;
        const conversation =
          protocol === "responses" ? { input: prompt } : { messages: [{ role: "user", content: prompt }] };
        return requestBytes(protocol, account.key, { stream: true, ...conversation });
      });
      here.simulator.hold();
      const client = new RawSocket({ port: here.port }).send(both.join(""));
      await here.simulator.waitFor(1);
      // A round trip on another connection: what was sent before it has been read by then.
      await (await ask(here, protocol, "sk-none")).text();
      const during = await here.store.inspect(account.tag);
      assert.deepEqual([during?.holds.length, during?.inFlight, here.simulator.count], [1, 1, 1]);
      here.simulator.release();
      const replies = await client.responses(2);
      client.close();
      assert.deepEqual(
        replies.map(({ status, body }) => [status, endOf(protocol, body)]),
        [
          [200, "complete"],
          [200, "complete"],
        ],
      );
      assert.match(replies[0]?.body ?? "", /first/);
      assert.match(replies[1]?.body ?? "", /second/);
      for (const { headers } of replies) await here.requestEnd(headers["x-request-id"] as string);
      const behind = await here.store.inspect(account.tag);
      assert.deepEqual([behind?.account.held, behind?.holds, behind?.inFlight], [0n, [], 0]);
      assert.equal((await here.store.inspect(other.tag))?.inFlight, 0);
    } finally {
      await here.close();
    }
  });
}
