/**
 * What a route returns beyond the form of its answer is removed, and refusals propose a remedy that needs no command
 * line.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { list, object, orNull, text } from "../../../../src/console/answers/shape.ts";
import { forOwners } from "../../../../src/console/owner/for-owners.ts";
import { AdminRefusal, noSuchKey } from "../../../../src/console/refusal.ts";
import { type ConsoleRoute, route } from "../../../../src/console/routes/contract.ts";

const Inner = object("Inner", { shown: text("Shown.", "a") });
const FORM = object("Outer", { shown: text("Shown.", "a"), inner: orNull(Inner), items: list(Inner) });
const INPUT = { params: {}, query: {}, body: {} };

function routeWith(handle: () => Promise<object>): ConsoleRoute {
  const spec = { method: "GET", path: "/one", id: "one", summary: "One", answers: { 200: FORM } } as const;
  return forOwners(route({ ...spec, handle: async () => ({ status: 200, body: (await handle()) as never }) }));
}

test("members that the form does not have are removed, at any depth", async () => {
  const more = { shown: "yes", cost_usd: "1.00" };
  const made = routeWith(async () => ({ ...more, inner: more, items: [more, more] }));
  const { body } = await made.handle(INPUT);
  assert.deepEqual(body, { shown: "yes", inner: { shown: "yes" }, items: [{ shown: "yes" }, { shown: "yes" }] });
});

test("null and empty values are kept", async () => {
  const made = routeWith(async () => ({ shown: "", inner: null, items: [] }));
  assert.deepEqual((await made.handle(INPUT)).body, { shown: "", inner: null, items: [] });
});

test("a refusal keeps its code and message, and its remedy names no command", async () => {
  const made = routeWith(async () => {
    throw noSuchKey("key_000000000000000000");
  });
  await assert.rejects(made.handle(INPUT), (error: unknown) => {
    assert.ok(error instanceof AdminRefusal);
    assert.deepEqual([error.status, error.code], [404, "unknown_key"]);
    assert.match(error.message, /key_000000000000000000/);
    assert.doesNotMatch(error.remedy, /tollgate/);
    return true;
  });
});

test("a defect is passed on as a defect", async () => {
  const made = routeWith(async () => {
    throw new TypeError("a defect");
  });
  await assert.rejects(made.handle(INPUT), TypeError);
});
