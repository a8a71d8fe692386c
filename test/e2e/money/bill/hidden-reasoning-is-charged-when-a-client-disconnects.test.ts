/**
 * Promise 3: a model that shows its reasoning is known to show everything, until a client asks for the reasoning to be
 * left out. A client that did so and disconnected at the last word used to pay for that word only: 0.0002 instead of
 * 0.30 USD. Row D2 of docs/failure-model.md.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { REPLIES_TO_TRUST } from "../../../../src/settle/observed.ts";
import { formatUsd } from "../../../../src/values/money.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, type Fields } from "../../protocol/whole/asking.ts";
import { asked, billed, limited, pricedConfig } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
after(() => here.close());

const SWITCHES: readonly (readonly [model: string, fields: Fields])[] = [
  ["chat-1", { reasoning: { exclude: true } }],
  ["chat-alias", { include_reasoning: false }],
];

for (const [model, fields] of SWITCHES) {
  test(`${JSON.stringify(fields)} on a model that shows everything: a client that disconnects is charged 20,000 hidden tokens`, async () => {
    const others = await here.account();
    const shown = { text: "It is 42.", usage: { input: 20, output: 5, reasoning: 0 } };
    here.simulator.program(shown, { times: REPLIES_TO_TRUST });
    for (let reply = 0; reply < REPLIES_TO_TRUST; reply++) {
      await asked(here, "chat", others, { ...limited("chat", "chat", 400), model, stream: true });
    }
    const account = await here.account();
    here.simulator.program({
      text: "The result is 42. END",
      deltaChars: 21,
      usage: { input: 20, output: 20_010, reasoning: 20_000 },
      ignoreLimit: true,
      pace: { betweenMs: 20 },
    });
    const leaving = new AbortController();
    const body = { ...limited("chat", "chat", 32_000, fields), model, stream: true };
    const reply = await ask(here, "chat", account.key, body, { signal: leaving.signal });
    const reader = reply.body?.getReader();
    for (let text = ""; !text.includes("END"); ) {
      const piece = await reader?.read();
      assert.ok(piece && !piece.done, text);
      text += Buffer.from(piece.value).toString();
    }
    leaving.abort();
    const { line, memo } = await billed(here, account);
    assert.deepEqual([formatUsd(line.amount), memo.counted, memo.output], ["0.30021", "upstream", 20_010]);
  });
}
