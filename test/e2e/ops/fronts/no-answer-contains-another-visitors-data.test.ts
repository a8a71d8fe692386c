/**
 * docs/failure-model.md row H1 with real fronts, whose connections to Tollgate are shared by all visitors: for every
 * method, framing and `Connection` header, nothing of one visitor's request appears in another's answer.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startRawSite } from "../../../rig/raw-site.ts";
import { exchange } from "../../../rig/raw-socket.ts";
import { assertHeld, attackAll } from "../../../unit/accept/site/attacks.ts";
import { behindFront, behindOf, FRONTS } from "./fronts.ts";

for (const kind of FRONTS) {
  for (const pace of ["in one piece", "the head first"] as const) {
    test(`row H1: ${kind.name}, ${pace}: no answer contains anything of another visitor`, async (t) => {
      const site = await startRawSite(t);
      const here = await startGatewayHere({ config: behindFront({ site: site.url }) });
      t.after(() => here.close());
      const front = await kind.start([behindOf(here)]);
      t.after(() => front.stop());
      const outcomes = await attackAll({ port: front.port }, site, pace);
      assertHeld(outcomes);
      // If the front refused all of them, this test would prove nothing.
      const served = outcomes.filter(({ status }) => status === 200).length;
      assert.ok(served > outcomes.length / 2, `${served} requests reached the site`);
      assert.ok(!here.log.some((line) => String(line.msg).includes("defect")));
    });
  }

  test(`row H2: ${kind.name} and Tollgate together pass a target on unchanged, or not at all`, async (t) => {
    const site = await startRawSite(t);
    const here = await startGatewayHere({ config: behindFront({ site: site.url }) });
    t.after(() => here.close());
    const front = await kind.start([behindOf(here)]);
    t.after(() => front.stop());
    const targets = [
      "/x\\..\\admin",
      "/x#/../admin",
      "/x/../admin",
      "/x/%2e%2e/admin",
      "//other.test/x",
      "/?",
      "/a??b",
    ];
    targets.push("/x%5c..%5cadmin", "/a//b", "/%", "/\xc3\xa9", "/@other.test", "/x/..;/admin");
    for (const target of targets) {
      const before = site.requests.length;
      const [answer] = await exchange({ port: front.port }, `GET ${target} HTTP/1.1\r\nHost: site.test\r\n\r\n`);
      const seen = site.requests.slice(before).map((request) => request.target);
      if (answer?.status === 200) assert.deepEqual(seen, [target]);
      else assert.deepEqual([answer?.status, seen], [400, []], target);
    }
  });
}
