/**
 * docs/failure-model.md rows A8, G3 and G4 for the decisions of parent and workers, over random histories of reloads,
 * kills, stops, failing starts and workers that end by themselves (played-world.ts has the invariants that hold at
 * every moment).
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { Chance } from "../../../endurance/simulation/chance.ts";
import { World } from "./played-world.ts";

const RUNS = 200;
const WORKERS_MAX = 4;
const EVENTS_MAX = 60;
/** Enough for the last restart after the longest delay, and for a stopped worker to be replaced. */
const REST_MS = 180_000;

const place = fc.nat({ max: WORKERS_MAX - 1 });
const event = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("reload" as const) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 3_000 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 30_000 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("kill" as const), place }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("stop" as const), place }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("continue" as const), place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("drain" as const), place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("defect" as const), place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("fail" as const), starts: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("refuse" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("stopParent" as const), ms: fc.nat({ max: 60_000 }) }) },
);
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

async function happen(world: World, what: Event): Promise<void> {
  const worker = "place" in what ? world.workerAt(what.place) : undefined;
  if (what.kind === "reload") world.reload();
  else if (what.kind === "wait") await world.advance(what.ms);
  else if (what.kind === "fail") world.failingStarts = what.starts;
  else if (what.kind === "refuse") world.refusals = 1;
  else if (what.kind === "stopParent") {
    world.stop(world.parent);
    await world.advance(what.ms);
    world.continue(world.parent);
  } else if (worker && what.kind === "kill") worker.end(null, "SIGKILL");
  else if (worker && what.kind === "stop") world.stop(worker.running);
  else if (worker && what.kind === "continue") world.continue(worker.running);
  else if (worker && !worker.running.isStopped) {
    if (what.kind === "drain" && worker.life.isOpen) worker.life.stop("drain");
    if (what.kind === "defect") worker.life.defect(new Error("a defect"));
  }
  await world.advance(0);
}

async function come(seed: number, workers: number, history: readonly Event[]): Promise<World> {
  const chance = new Chance(seed);
  const world = new World(workers, () => chance.next());
  // The first start may fail, and then no worker is left.
  const started = world.fleet.start().catch(() => {});
  for (const what of history) await happen(world, what);
  // A stopped worker stays stopped, and is replaced.
  world.failingStarts = 0;
  world.refusals = 0;
  await world.advance(REST_MS);
  await started;
  return world;
}

const history = [
  fc.integer(),
  fc.integer({ min: 1, max: WORKERS_MAX }),
  fc.array(event, { maxLength: EVENTS_MAX, size: "max" }),
] as const;

test("in the end all workers serve the newest configuration, and it is reported as in force", async () => {
  await fc.assert(
    fc.asyncProperty(...history, async (seed, workers, events) => {
      const world = await come(seed, workers, events);
      assert.equal(world.living.length, workers);
      for (const { isOpen, generation } of world.living) assert.deepEqual([isOpen, generation], [true, world.newest]);
      assert.equal(world.inForce, world.newest);
      assert.deepEqual([world.fleet.reasons(), world.fleet.notes()], [[], []]);
      assert.deepEqual(
        world.fleet.states(),
        Array.from({ length: workers }, (_, at) => ({ worker: at + 1, up: true, generation: world.newest })),
      );
    }),
    { numRuns: RUNS },
  );
});

test("after the fleet was told to end, no worker is left and none is started, whatever they were doing", async () => {
  const how = fc.constantFrom("drain" as const, "close" as const);
  await fc.assert(
    fc.asyncProperty(
      ...history,
      how,
      fc.array(event, { maxLength: 10 }),
      async (seed, workers, events, stop, after) => {
        const chance = new Chance(seed);
        const world = new World(workers, () => chance.next());
        void world.fleet.start().catch(() => {});
        for (const what of events) await happen(world, what);
        world.isEnding = true;
        let isOver = false;
        void world.fleet.stop(stop, 60_000).then(() => {
          isOver = true;
        });
        for (const what of after) await happen(world, what);
        await world.advance(REST_MS);
        assert.deepEqual([isOver, world.living.length], [true, 0]);
        assert.equal(world.inForce, world.newest, "a reload does not wait for workers that have ended");
      },
    ),
    { numRuns: RUNS / 4 },
  );
});
