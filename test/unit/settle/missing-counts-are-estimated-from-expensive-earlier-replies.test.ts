// Replies without a count are priced by the pace that earlier replies of the model showed: by the expensive end of what was
// seen, within limits.
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { learn } from "../../../src/request/disconnect.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { settleRequest } from "../../../src/request/settlement.ts";
import { HIDDEN_PER_S_DEFAULT, Observed, REPLIES_TO_TRUST } from "../../../src/settle/observed.ts";
import type { Route } from "../../../src/values/catalog.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE, type Usage } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const PLACE = { upstream: "up", upstreamModel: "m" };

/** A reply with ten seconds of hidden reasoning and 100 visible tokens. */
const thought = (perS: number) => ({
  ...{ usage: { ...NO_USAGE, output: 100 + 10 * perS }, silentMs: 10_000 },
  produced: { bytes: 400, tokens: 100, deltas: 100 },
});
/** A reply without hidden output whose token count is this many hundredths of the estimate from its text. */
const shown = (hundredths: number) => ({
  ...{ usage: { ...NO_USAGE, output: hundredths * 10 }, silentMs: 0 },
  produced: { bytes: 4_000, tokens: 1_000, deltas: 1_000 },
});

test("the hidden pace is the ninth decile of the replies seen, once there are five", () => {
  const observed = new Observed();
  for (const perS of [300, 1_000, 100, 200]) observed.note(PLACE, thought(perS));
  assert.deepEqual(observed.paceOf(PLACE, false), {
    ...{ thinks: "yes", hiddenPerS: HIDDEN_PER_S_DEFAULT, visibleFactor: 1 },
  });
  for (const perS of [900, 400, 800, 500, 700, 600]) observed.note(PLACE, thought(perS));
  assert.equal(observed.paceOf(PLACE, false).hiddenPerS, 900);
});

test("the tokens per text are the ninth decile of the replies seen, and never fewer than the estimate by characters", () => {
  const observed = new Observed();
  for (const hundredths of [110, 190, 120, 130, 140, 150, 160, 170, 180, 105]) observed.note(PLACE, shown(hundredths));
  assert.equal(observed.paceOf(PLACE, false).visibleFactor, 1.8);
  const frugal = new Observed();
  for (let i = 0; i < 10; i++) frugal.note(PLACE, shown(40));
  assert.equal(frugal.paceOf(PLACE, false).visibleFactor, 1);
});

test("a reply with a separate reasoning count says nothing about the token density of its text", () => {
  const observed = new Observed();
  for (let i = 0; i < 10; i++) {
    const { usage, ...reply } = shown(180);
    observed.note(PLACE, { ...reply, usage: { ...usage, reasoning: 800 } });
  }
  assert.equal(observed.paceOf(PLACE, false).visibleFactor, 1);
});

test("only the last 200 replies count", () => {
  const observed = new Observed();
  for (let i = 0; i < 200; i++) observed.note(PLACE, thought(900));
  for (let i = 0; i < 190; i++) observed.note(PLACE, thought(100));
  assert.equal(observed.paceOf(PLACE, false).hiddenPerS, 100, "a tenth of the replies may be above it");
  for (let i = 0; i < 10; i++) observed.note(PLACE, thought(100));
  for (let i = 0; i < 21; i++) observed.note(PLACE, thought(300));
  assert.equal(observed.paceOf(PLACE, false).hiddenPerS, 300, "21 of 200 are more than a tenth");
  for (let i = 0; i < 180; i++) observed.note(PLACE, thought(100));
  assert.equal(observed.paceOf(PLACE, false).hiddenPerS, 100);
});

test("a reply with silent time says nothing about the token density of its text", () => {
  const observed = new Observed();
  for (let i = 0; i < 10; i++) observed.note(PLACE, { ...shown(190), silentMs: 5_000 });
  assert.equal(observed.paceOf(PLACE, false).visibleFactor, 1);
});

test("an incomplete count is no proof that a model shows all its output", () => {
  const text = { bytes: 400, tokens: 100, deltas: 100 };
  const thinksAfter = (usage: Usage, produced = text, final = true) => {
    const observed = new Observed();
    for (let i = 0; i < REPLIES_TO_TRUST; i++) {
      learn(PLACE as Route, { usage, final, produced, silentMs: 0 }, { observed });
    }
    return observed.paceOf(PLACE, false).thinks;
  };
  assert.equal(thinksAfter({ ...NO_USAGE, input: 50, output: 100 }), "no");
  assert.equal(thinksAfter({ ...NO_USAGE, input: 50, output: 100 }, text, false), "unknown");
  // Only its input was counted, only its total, or its output as zero.
  assert.equal(thinksAfter({ ...NO_USAGE, input: 50, outputUncounted: true }), "unknown");
  assert.equal(thinksAfter({ ...NO_USAGE, output: 100, outputUncounted: true }), "unknown");
  assert.equal(thinksAfter({ ...NO_USAGE, unsplit: 150 }), "unknown");
  assert.equal(thinksAfter({ ...NO_USAGE, output: 100, unsplit: 150 }), "unknown");
  assert.equal(thinksAfter({ ...NO_USAGE, input: 50 }), "unknown");
  // Nor is a reply without any text.
  assert.equal(thinksAfter({ ...NO_USAGE, input: 50 }, { bytes: 0, tokens: 0, deltas: 0 }), "unknown");
});

test("a count that its upstream gave after the stream had ended says nothing about what passed through the gateway", () => {
  const observed = new Observed();
  const { usage, silentMs, produced } = thought(900);
  for (const countedLater of [true, undefined]) {
    for (let i = 0; i < REPLIES_TO_TRUST; i++) {
      learn(PLACE as Route, { usage, final: true, produced, silentMs, countedLater }, { observed });
    }
    assert.equal(observed.paceOf(PLACE, false).thinks, countedLater ? "unknown" : "yes");
  }
});

test("replies of another endpoint of a model say nothing about how the model writes", async () => {
  const [route] = MODEL.routes;
  assert.ok(route);
  const permit = {
    ...{ requestId: "r", tag: "t", keyId: "key", model: MODEL, group: CATALOG.groups.get("money") },
    terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: undefined, tools: [], options: [] },
    ...{ tokensTaken: 10, hold: nanoUsd(900_000_000n), outputMost: 100, unmetered: false, storeTimeMs: 0, limits: {} },
  } as unknown as Permit;
  const thinksAfter = async (pathSuffix: string | undefined) => {
    const observed = new Observed();
    let settled = 0;
    const parts = {
      ...{ observed, cut: new AbortController().signal, settings: () => ({ leftAllowanceNano: 0 }) },
      settler: { settle: async () => void settled++ },
    } as unknown as PipelineParts;
    for (let i = 0; i < REPLIES_TO_TRUST; i++) {
      const run = {
        ...{ permit, attempts: [], settled: false, asksToThink: false, streamed: false, endpoint: { pathSuffix } },
        record: { answeredBy() {}, charged() {}, settled() {} },
      } as unknown as Run;
      const measured = { usage: { ...NO_USAGE, input: 50, output: 100 }, final: true, silentMs: 0 };
      const produced = { bytes: 400, tokens: 100, deltas: 100 };
      const ending = { ...{ delivered: true, complete: true, cause: "complete", route, tier: undefined } };
      await settleRequest(run, { ...ending, attempts: [], measured: { ...measured, produced } }, parts);
    }
    assert.equal(settled, REPLIES_TO_TRUST);
    return observed.paceOf(route, false).thinks;
  };
  assert.equal(await thinksAfter(undefined), "no");
  assert.equal(await thinksAfter("/compact"), "unknown");
});

test("one in eight abandoned streams is checked, and more the longer they were silent", () => {
  const checkedShare = (silentMs: number) => {
    let at = 0;
    const observed = new Observed(() => at++ / 1_000);
    let checked = 0;
    for (let i = 0; i < 1_000; i++) if (observed.drawCheck({ silentMs })) checked++;
    return checked / 1_000;
  };
  assert.deepEqual([0, 3_500, 7_000, 60_000].map(checkedShare), [0.125, 0.563, 1, 1]);
});
