/**
 * The memory of a request is collected from the young generation: a gateway under steady load collects its whole heap
 * because of long-lived objects, not because of finished requests. A Map to which requests are added and from which
 * they are removed is enough to move all their objects to the old generation (src/values/collections/transient.ts); so
 * is a place in the code whose objects V8 allocates as old (src/telemetry/heap.ts).
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { openStore } from "../../../../src/store/open.ts";
import { Secret } from "../../../../src/values/secret.ts";
import type { StoreSettings } from "../../../../src/values/settings.ts";
import { outlivedMb, scavenges } from "../../../rig/collections.ts";
import { CHECKOUT, makeAccount, spawnGateway, testConfig } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { PATIENT } from "../../../unit/store/benches.ts";

const REQUESTS = 6_000;
const AT_ONCE = 32;
/** Warm-up requests before the measurement, until all code is compiled. */
const WARM_UPS = 2;
/** The limit, of some 100,000 bytes that a request allocates. It includes code that is compiled meanwhile. */
const OUTLIVING_BYTES_MAX = 1_500;
const MB = 1024 * 1024;

type StoreOf = (dir: string) => { readonly text: string; readonly settings: StoreSettings };

/** @returns how many bytes of a request outlive it, once the gateway's code has been compiled. */
async function outliving(t: TestContext, storeOf: StoreOf): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-memory-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const { text, settings } = storeOf(dir);
  const store = await openStore(settings, PATIENT);
  const { key } = await makeAccount(store, { usd: "1000" });
  await store.close();
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const config = testConfig({ upstreamUrl: simulator.url, dir, store: text });
  const [node, ...main] = CHECKOUT as [string, string];
  const gateway = await spawnGateway(config, [], { program: [node, "--trace-gc", ...main] });
  t.after(() => gateway.stop());
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  t.after(() => agent.destroy());
  const body = JSON.stringify({ model: "chat-1", messages: [{ role: "user", content: "word ".repeat(300) }] });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const asked = request(`${gateway.url}/v1/chat/completions`, { method: "POST", agent, headers }, (response) => {
        void buffer(response).then((bytes) => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(String(bytes)));
        }, reject);
      });
      asked.on("error", reject).end(body);
    });
  const load = async () => {
    let left = REQUESTS;
    const client = async () => {
      while (left-- > 0) await ask();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
  };
  for (let i = 0; i < WARM_UPS; i++) await load();
  const compiled = gateway.output().length;
  await load();
  const output = gateway.output().slice(compiled);
  assert.ok(scavenges(output) >= 5, output);
  return (outlivedMb(output) * MB) / REQUESTS;
}

const EMBEDDED: StoreOf = (dir) => ({
  text: `embedded:${join(dir, "data")}`,
  settings: { kind: "embedded", dir: join(dir, "data") },
});

test("whole replies with the embedded store leave little in the old generation", async (t) => {
  const bytes = await outliving(t, EMBEDDED);
  assert.ok(bytes < OUTLIVING_BYTES_MAX, `${bytes}`);
});

test("whole replies with Redis leave little in the old generation", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const bytes = await outliving(t, () => ({
    text: redis.url,
    settings: { kind: "redis", url: new Secret(redis.url) },
  }));
  assert.ok(bytes < OUTLIVING_BYTES_MAX, `${bytes}`);
});
