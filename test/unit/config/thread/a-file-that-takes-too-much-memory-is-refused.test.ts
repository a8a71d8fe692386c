/**
 * A broken file of a few megabytes can take gigabytes to parse. The thread's heap is limited, and the process does not
 * try again itself: it would run out of memory, too, and end.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { digest } from "../../../../src/config/found.ts";
import { attemptInThread } from "../../../../src/config/thread/thread.ts";
import { awaited } from "../watched.ts";

/** Enough for a thread to begin. */
const HEAP_MB = 48;

test("a file that takes more memory than the thread may have is a problem, and is not loaded by the process", async () => {
  const found = { text: "[".repeat(4_000_000) };
  const input = { file: "tollgate.yaml", env: {}, seen: new Map([["tollgate.yaml", found]]), readOnce: new Map() };
  const attempted = await awaited(attemptInThread(input, found.text, HEAP_MB).result);
  assert.deepEqual(attempted, {
    loaded: {
      problems: [
        {
          file: "tollgate.yaml",
          line: 1,
          column: 1,
          key: "",
          message: "the configuration cannot be loaded: reading it takes more than 48 MB of memory",
        },
      ],
    },
    tried: new Map([["tollgate.yaml", digest(found)]]),
  });
});
