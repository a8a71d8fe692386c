/**
 * The embedded store in a folder of its own, closed and removed when the test ends.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { openEmbedded } from "../../../src/store/embedded/store.ts";
import { openStore } from "../../../src/store/open.ts";

/** The same, with a clock that never moves. */
export function openStandingStore(t: TestContext, nowMs = Date.now()): Promise<Store> {
  return openStoreAt(t, () => nowMs);
}

/** The same, with the test's clock. */
export async function openStoreAt(t: TestContext, now: () => number): Promise<Store> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-console-"));
  const store = openEmbedded(dir, now);
  t.after(async () => {
    await store.close();
    await rm(dir, { recursive: true });
  });
  return store;
}

export async function openTestStore(t: TestContext): Promise<Store> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-console-"));
  const store = await openStore({ kind: "embedded", dir }, {});
  t.after(async () => {
    await store.close();
    await rm(dir, { recursive: true });
  });
  return store;
}

/**
 * A store in which one operation, after its answer is known, waits for the promise of `hold`, which gets the call's
 * arguments.
 */
export function holding(
  store: Store,
  operation: keyof Store,
  hold: (...asked: readonly unknown[]) => Promise<unknown>,
): Store {
  return new Proxy(store, {
    get(target, name) {
      const method = target[name as keyof Store] as (...args: never[]) => unknown;
      if (name !== operation) return method.bind(target);
      return async (...args: never[]) => {
        const answer = await method.apply(target, args);
        await hold(...args);
        return answer;
      };
    },
  });
}
