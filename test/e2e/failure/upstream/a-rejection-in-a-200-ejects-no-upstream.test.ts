/**
 * A server that answers 200 and rejects the request in the body or in the first event, in any of the forms that servers
 * use, is healthy: the client gets a 400 with the server's text, there is no retry, and the upstream is not ejected
 * (ARCHITECTURE.md promise 10).
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { type GatewayHere, settledMetrics, startGatewayHere } from "../../../rig/gateway.ts";
import { limited, pricedConfig } from "../../money/bill/rig.ts";
import { ask, assertAtRest, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const LONG = "The number of tokens to keep is greater than the context length";
/** As servers write it: with a status, as plain text, without an envelope. */
const FORMS = {
  "a status": [{ error: { code: 400, message: "Invalid tool schema" } }, /Invalid tool schema/],
  "a plain text": [{ error: LONG }, /greater than the context length/],
  "no envelope": [
    { object: "error", message: "Invalid grammar: x", type: "BadRequestError", code: 400 },
    /Invalid grammar/,
  ],
} as const;
const CASES = PROTOCOL_LIST.flatMap((client) =>
  Object.entries(FORMS).map(([form, [body, words]]) => ({ client, form, body, words })),
);

for (const { client, form, body, words } of CASES) {
  for (const stream of [false, true]) {
    test(`${client}, ${form}, ${stream ? "streamed" : "whole"}: the client gets a 400 after one attempt, and nothing is charged or absorbed`, async () => {
      const account = await here.account();
      here.simulator.program(stream ? { frames: [{ data: body }] } : { body }, { times: 20 });
      const before = here.simulator.requests.length;
      for (let i = 0; i < 6; i++) {
        const reply = await ask(here, client, account.key, limited(client, "chat", 50, { stream }));
        const text = await reply.text();
        assert.equal(reply.status, 400, text);
        assert.match(text, words);
      }
      assert.equal(here.simulator.requests.length - before, 6);
      await assertAtRest(here, account);
      assert.deepEqual(await usageLines(here, account), []);
      assert.match(await settledMetrics(here.adminUrl), /tollgate_upstream_healthy\{upstream="up-chat"\} 1/);
    });
  }
}
