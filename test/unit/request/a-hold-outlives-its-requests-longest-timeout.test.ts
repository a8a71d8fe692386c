/**
 * A request may be served by any of its model's upstreams, so it may take as long as the one with the longest timeout
 * allows, and its hold lasts a minute longer: a hold that ends before its request leaves the charge without funds
 * (src/request/admission.ts).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { NO_SEEN_KEYS } from "../../../src/admit/seen-keys.ts";
import { admitRequest } from "../../../src/request/admission.ts";
import type { RequestRead } from "../../../src/request/receive.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import type { AdmitAsk, AdmitRefused } from "../../../src/store/admission.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { WellFormedKey } from "../../../src/values/key.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const REFUSED: AdmitRefused = {
  ...{ outcome: "refused", cause: "no_entitlement", group: "money", retryAfterMs: undefined },
  limits: { requests: undefined, tokens: undefined },
};

/** The total time of the request and the lifetime of its hold, with upstreams of these total timeouts. */
async function held(totalsMs: readonly number[]) {
  const [route] = MODEL.routes;
  assert.ok(route);
  const names = totalsMs.map((_, at) => `up-${at}`);
  const model = { ...MODEL, routes: names.map((upstream) => ({ ...route, upstream })) };
  const catalog = { ...CATALOG, models: new Map([[MODEL.name, model]]) };
  const upstreams = new Map(names.map((name, at) => [name, { timeouts: { totalMs: totalsMs[at] } }]));
  const asked: AdmitAsk[] = [];
  const parts = {
    settings: () => ({ catalog, upstreams, idempotency: { enabled: false, keepMs: 0 } }),
    journal: { health: () => ({ usable: true }) },
    admit: {
      seenKeys: NO_SEEN_KEYS,
      catalog: () => catalog,
      wallMs: () => 0,
      store: {
        async admit(ask: AdmitAsk) {
          asked.push(ask);
          return REFUSED;
        },
      },
    },
  } as unknown as PipelineParts;
  const envelope = {
    ...{ protocol: "chat", model: MODEL.name, stream: false, limit: undefined, choices: 1, textTokens: 0 },
    ...{ bodyBytes: 100, textBytes: 100, media: [], compacts: false, serviceTier: undefined, hostedTools: [] },
    ...{ demandedTools: [], options: [], thinkingBudget: 0 },
  };
  const run = { protocol: "chat", request: { id: "r" }, record: { asked() {} }, totalMs: 0 } as unknown as Run;
  const read = { read: { envelope }, view: undefined, address: "" } as unknown as RequestRead;
  assert.ok(isRefusal(await admitRequest(run, { tag: "tag", hash: "hash" } as WellFormedKey, read, parts)));
  return [run.totalMs, asked[0]?.holdTtlMs];
}

test("the longest total timeout counts, whichever upstream has it", async () => {
  assert.deepEqual(await held([60_000]), [60_000, 120_000]);
  assert.deepEqual(await held([600_000, 60_000]), [600_000, 660_000]);
  assert.deepEqual(await held([60_000, 600_000]), [600_000, 660_000]);
});
