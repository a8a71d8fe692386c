/**
 * docs/failure-model.md row 76 through a front: limits per address apply to the client that the front sees, not to the
 * address that the client writes, so a client can neither evade them nor use up those of another. Clients are
 * 127.0.0.x; only 127.0.0.1, the front, is trusted.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { spawnGateway, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { behindFront, behindOf, FRONTS, type Front } from "./fronts.ts";

/** Failures per minute that an address may have; the next one gets a 429. */
const FAILURES_MAX = 20;

/** Sends a request with an unknown key from this address of the client. @returns the status. */
function failFrom(front: Front, localAddress: string, forged: Record<string, string>): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const options = {
    host: "127.0.0.1",
    port: front.port,
    localAddress,
    path: "/v1/models",
    headers: { authorization: "Bearer sk-nobody", ...forged },
    agent: false as const,
  };
  request(options, (res) => {
    res.resume();
    res.on("end", () => resolve(res.statusCode ?? 0));
  })
    .on("error", reject)
    .end();
  return promise;
}

async function limitsFollowTheClient(front: Front): Promise<void> {
  const victim = "127.0.0.3";
  for (let i = 0; i < FAILURES_MAX; i++) {
    const forged = { "x-forwarded-for": `6.6.6.${i}`, forwarded: `for=7.7.7.${i}`, "x-real-ip": `8.8.8.${i}` };
    assert.equal(await failFrom(front, "127.0.0.2", forged), 401, `failure ${i + 1}`);
  }
  assert.equal(
    await failFrom(front, "127.0.0.2", { "x-forwarded-for": "6.6.6.99" }),
    429,
    "forged headers do not evade the limit",
  );
  const aimed = { "x-forwarded-for": victim, "x-real-ip": victim, "x-envoy-external-address": victim };
  for (let i = 0; i < FAILURES_MAX + 5; i++) await failFrom(front, "127.0.0.4", aimed);
  assert.equal(await failFrom(front, victim, {}), 401, "forged headers do not block another address");
}

for (const kind of FRONTS) {
  test(`${kind.name}, over TCP: a forged address does not change whose failures are counted`, async () => {
    const here = await startGatewayHere({ config: behindFront() });
    const front = await kind.start([behindOf(here)]);
    try {
      await limitsFollowTheClient(front);
    } finally {
      await front.stop();
      await here.close();
    }
  });

  test(`${kind.name}, over a unix socket: a forged address does not change whose failures are counted`, async () => {
    const dir = mkdtempSync(join(tmpdir(), "tollgate-fronts-"));
    const path = join(dir, "tollgate.sock");
    const change = { listen: `unix:${path}`, trust_proxy: ["unix"] };
    const text = testConfig({ upstreamUrl: "http://127.0.0.1:9/v1", dir }, change);
    const gateway = await spawnGateway(text);
    const front = await kind.start([{ listen: path, adminPort: Number(new URL(gateway.adminUrl).port) }]);
    try {
      await limitsFollowTheClient(front);
    } finally {
      await front.stop();
      await gateway.stop("SIGKILL");
      rmSync(dir, { recursive: true, force: true });
    }
  });
}
