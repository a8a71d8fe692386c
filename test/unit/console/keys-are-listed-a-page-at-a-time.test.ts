/** Whoever follows `next` sees each key once, and is not sent to a page after the last one. */
import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

async function threeKeys(t: Parameters<typeof startConsole>[0]) {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  for (const name of ["one", "two", "three"]) {
    await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big", name });
  }
  const { items } = (await ask("GET", "/admin/v1/accounts/alice/keys")).json;
  const pages: string[][] = [];
  const follow = async (limit: number): Promise<string[][]> => {
    for (let cursor = ""; pages.length < 9; ) {
      const { json } = await ask("GET", `/admin/v1/accounts/alice/keys?limit=${limit}${cursor}`);
      pages.push(json.items.map(({ id }: { readonly id: string }) => id));
      if (json.next === null) break;
      cursor = `&cursor=${json.next}`;
    }
    return pages;
  };
  return { ids: items.map(({ id }: { readonly id: string }) => id) as string[], follow };
}

test("pages of two have each of three keys once, in the order of the whole list", async (t) => {
  const { ids, follow } = await threeKeys(t);
  assert.deepEqual(await follow(2), [ids.slice(0, 2), ids.slice(2)]);
});

test("a page that ends with the last key has no next", async (t) => {
  const { ids, follow } = await threeKeys(t);
  assert.deepEqual(await follow(3), [ids]);
});
