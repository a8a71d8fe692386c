/**
 * The differential test: random operations on both stores at once, with every answer and the whole state compared after each
 * step while the clock jumps ahead and back. It compares the Lua scripts with the TypeScript, and both with the identities of
 * the money.
 */
import test from "node:test";
import fc from "fast-check";
import { embeddedBench, redisBench } from "./benches.ts";
import { Run } from "./differential.ts";
import { anyOperation } from "./operations.ts";

const RUNS = Number(process.env.DIFFERENTIAL_RUNS ?? 100);
const STEPS_MAX = 60;

test("both stores give equal answers and have equal state after every operation, whatever the clock does (rows E1 and E2)", async () => {
  const embedded = await embeddedBench();
  const redis = await redisBench();
  let runs = 0;
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyOperation, { minLength: 5, maxLength: STEPS_MAX, size: "max" }),
        async (operations) => {
          await redis.redis.command("FLUSHALL");
          const run = new Run(++runs, [embedded, redis]);
          await run.begin();
          for (const operation of operations) await run.step(operation);
          await run.end(operations);
        },
      ),
      { numRuns: RUNS },
    );
  } finally {
    await embedded.close();
    await redis.close();
  }
});
