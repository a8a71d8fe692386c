/**
 * The embedded store in a folder of its own, closed and removed when the test ends.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Store } from "../../src/store/contract.ts";
import { openStore } from "../../src/store/open.ts";

export async function openTestStore(t: TestContext): Promise<Store> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-console-"));
  const store = await openStore({ kind: "embedded", dir }, {});
  t.after(async () => {
    await store.close();
    await rm(dir, { recursive: true });
  });
  return store;
}
