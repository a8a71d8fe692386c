/**
 * A model may have two routes to one upstream, to models of which one thinks and the other shows all it writes. What a try
 * may have written unseen until its client disconnected depends on the model that it used.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { attemptFactsOf } from "../../../src/request/disconnect.ts";
import type { Run } from "../../../src/request/run.ts";
import { Observed, REPLIES_TO_TRUST } from "../../../src/settle/observed.ts";
import type { Route } from "../../../src/values/catalog.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { MODEL } from "../../endurance/simulation/catalog.ts";

const [ANY] = MODEL.routes as [Route];
const routeTo = (upstreamModel: string, thinking: Route["capabilities"]["thinking"]): Route => ({
  ...{ ...ANY, upstream: "east", upstreamModel },
  capabilities: { ...ANY.capabilities, thinking },
});
const OPEN = routeTo("open", "none");
const DEEP = routeTo("deep", "budget");

test("of two models at one upstream, only the one that thinks may have written unseen", () => {
  const observed = new Observed();
  const usage = { ...NO_USAGE, output: 200 };
  const reply = { usage, produced: { bytes: 800, tokens: 200, deltas: 200 }, silentMs: 0 };
  for (let i = 0; i < REPLIES_TO_TRUST; i++) observed.note(OPEN, reply);
  const hiddenAt = ({ upstreamModel: model }: Route) => {
    const facts = { bytesReceived: 0, sentToUpstream: true, refusedByUpstream: false };
    const attempt = { upstream: "east", model, outcome: "client_gone", startedAtMs: 0, endedAtMs: 3_000, ...facts };
    const run = { attempts: [attempt], streamed: true, asksToThink: false } as unknown as Run;
    const permit = { model: { ...MODEL, routes: [OPEN, DEEP] }, terms: { tools: [] } } as unknown as Permit;
    return attemptFactsOf(run, permit, { observed })[0]?.hiddenTokens;
  };
  assert.equal(hiddenAt(OPEN), undefined);
  assert.equal(hiddenAt(DEEP), 300, "150 tokens a second, without the first second");
});
