/**
 * docs/failure-model.md rows C1 and 70: no connection, an unknown name, or an untrusted certificate: a refusal in the
 * client's protocol, and no charge.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import test, { after, before } from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { type ByteProxy, startByteProxy } from "../../../rig/byte-proxy.ts";
import { selfSigned } from "../../../rig/certificates.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";
import { rawUpstream, withUpstreams } from "./rig.ts";

const identity = selfSigned();
const simulator = await startSimulator();
let requestsBehindTls = 0;
const stranger = createServer(identity, (_request, response) => {
  requestsBehindTls += 1;
  response.setHeader("content-type", "application/json").end("{}");
});
let proxy: ByteProxy;
let here: GatewayHere;
before(async () => {
  proxy = await startByteProxy(simulator.port);
  const gone = await rawUpstream(() => undefined);
  await gone.close();
  stranger.listen(0, "127.0.0.1");
  await once(stranger, "listening");
  const tls = `https://localhost:${(stranger.address() as AddressInfo).port}/v1`;
  here = await startGatewayHere({
    config: withUpstreams({
      refused: { url: gone.url },
      reset: { url: proxy.url },
      nameless: { url: "http://nowhere.invalid/v1" },
      plain: { url: simulator.url.replace("http:", "https:") },
      stranger: { url: tls },
    }),
  });
});
after(async () => {
  await here.close();
  await proxy.close();
  await simulator.close();
  stranger.close();
});

for (const [name, what, attempts] of [
  ["refused", "refuses the connection", 2],
  ["reset", "resets each connection", 2],
  ["nameless", "has an unknown host name", 2],
  ["plain", "speaks no TLS on its port", 1],
  ["stranger", "has an untrusted certificate", 1],
] as const) {
  for (const protocol of PROTOCOL_LIST) {
    for (const stream of [true, false]) {
      test(`${protocol}, ${stream ? "streamed" : "whole"}: no charge for an upstream that ${what}`, async () => {
        const account = await here.account();
        if (name === "reset") proxy.spoil({ kind: "reset", at: 0 }, 2);
        const reply = await ask(here, protocol, account.key, { model: `${protocol}-${name}`, stream });
        const { cause, message } = await errorOf(reply);
        assert.deepEqual([reply.status, cause], [403, "upstream_unavailable"]);
        assert.equal(reply.headers.get("x-should-retry"), "true");
        assert.match(reply.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
        for (const word of ["127.0.0.1", "localhost", "invalid", "certificate", "ECONN", "ENOTFOUND"]) {
          assert.ok(!message.includes(word), message);
        }
        await assertAtRest(here, account);
        assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n);
        // What was sent may still cost the operator, and then it is in the ledger; what was never sent cannot.
        const kinds = (await usageLines(here, account)).map((line) => line.kind);
        assert.deepEqual(kinds, name === "reset" ? ["absorbed", "absorbed"] : []);
        const line = await here.requestEnd(reply.headers.get("x-request-id") as string);
        assert.equal(line.attempts, attempts);
      });
    }
  }
}

test("nothing of a request was written to a server with an untrusted certificate", () => {
  assert.equal(requestsBehindTls, 0);
});
