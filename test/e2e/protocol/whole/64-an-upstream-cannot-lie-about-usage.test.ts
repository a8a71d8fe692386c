/** docs/failure-model.md rows 64 and C10: an invalid count is not charged, and the charge stays within bounds. */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, framesOf, memoOf, PROTOCOL_LIST, recomputed, usageLines } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const NAMES = {
  chat: ["prompt_tokens", "completion_tokens"],
  messages: ["input_tokens", "output_tokens"],
  responses: ["input_tokens", "output_tokens"],
} as const;

const LIES = ["-5", "1e30", '"7"', "null", "2.5", "[]", "1e400", "9007199254740993", "1000000001"];

/** Changes the usage in a reply's text, wherever it occurs. */
function lied(protocol: Protocol, text: string, literal: string, sides: readonly (0 | 1)[]): string {
  return sides.reduce(
    (was, side) =>
      was.replace(new RegExp(`"${NAMES[protocol][side]}":\\d+`, "g"), `"${NAMES[protocol][side]}":${literal}`),
    text,
  );
}

for (const protocol of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    test(`${protocol}${stream ? ", streamed" : ""}: no invalid count is charged, and the ledger says who counted`, async () => {
      const honest = await (
        await ask(here, protocol, (await here.account()).key, { stream, stream_options: undefined })
      ).text();
      const template = stream ? await directStream(protocol) : honest;
      for (const literal of LIES) {
        for (const sides of [[0], [1], [0, 1]] as const) {
          const account = await here.account();
          const text = lied(protocol, template, literal, sides);
          assert.notEqual(text, template);
          if (stream) {
            const frames = framesOf(text).filter((frame) => frame.data !== "");
            here.simulator.program({
              frames: frames.map(({ event, data }) => (event === undefined ? { data } : { event, data })),
            });
          } else here.simulator.program({ body: text });
          const reply = await ask(here, protocol, account.key, { stream });
          await reply.text();
          await assertAtRest(here, account);
          const [line, ...more] = await usageLines(here, account);
          assert.deepEqual(more, []);
          const memo = memoOf(line);
          const what = `${literal} on ${sides}: ${line?.memo}`;
          // A missing count follows from the total; an invalid one invalidates the total too.
          const follows = literal === "null" && sides.length === 1 && protocol !== "messages";
          assert.equal(memo.counted, follows ? "upstream" : "estimate", what);
          assert.ok(line && line.amount > 0n && line.amount <= BigInt(memo.hold as string), what);
          assert.equal(line.amount, recomputed(line), what);
          if (sides.some((side) => side === 0)) assert.ok((memo.input as number) > 0, what);
          if (sides.some((side) => side === 1)) assert.ok((memo.output as number) > 1, what);
        }
      }
    });
  }

  test(`${protocol}: a valid but impossible count is charged as far as funds go, and the line marks it as impossible`, async () => {
    for (const usage of [{ output: 900_000_000 }, { input: 900_000_000 }]) {
      const account = await here.account();
      here.simulator.program({ usage, ignoreLimit: true });
      const reply = await ask(here, protocol, account.key);
      await reply.text();
      await assertAtRest(here, account);
      const [line, absorbed] = await usageLines(here, account);
      assert.match(String(memoOf(line).surprise), /^(output_above_max|input_above_context)$/);
      assert.equal(line?.amount, 10_000_000_000n);
      assert.equal((absorbed?.amount ?? 0n) + 10_000_000_000n, recomputed(line as never));
    }
  });
}

/** A stream as the simulator sends it, including usage. */
async function directStream(protocol: Protocol): Promise<string> {
  const seen = { stream: true, ...(protocol === "chat" ? { stream_options: { include_usage: true } } : {}) };
  const url = here.simulator.url.replace(/\/v1$/, "");
  return (await ask({ url }, protocol, undefined, seen)).text();
}
