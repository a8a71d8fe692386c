/**
 * A question about what a server keeps costs nothing, and its answer may have 32 MiB. So a few of these answers are read at once, and
 * the others wait unread (ARCHITECTURE.md promise 13).
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import test, { type TestContext } from "node:test";
import type { Dispatcher } from "../../../src/dispatch/dispatcher.ts";
import { ReadingTurns } from "../../../src/dispatch/upstream/reading-turns.ts";
import { ask, assertAnswered, byName, httpServer, rig, route, upstream } from "./rig.ts";

const OTHERS = 5;
const LARGE = `{"text":"${"x".repeat(8 * 1024 * 1024)}"}`;

test("four have their turn, the others follow in their order, and one that leaves loses its place", () => {
  const turns = new ReadingTurns();
  const come: string[] = [];
  const taken = ["a", "b", "c", "d", "e", "f", "g"].map((name) => turns.take(() => void come.push(name)));
  assert.deepEqual(
    taken.map(({ isNow }) => isNow),
    [true, true, true, true, false, false, false],
  );
  taken[5]?.end();
  assert.equal(come.length, 0);
  taken[2]?.end();
  assert.deepEqual(come, ["e"]);
  taken[4]?.end();
  assert.deepEqual(come, ["e", "g"]);
  for (const at of [0, 1, 3, 6]) taken[at]?.end();
  const again = ["h", "i", "j", "k", "l"].map((name) => turns.take(() => void come.push(name)));
  assert.deepEqual(
    again.map(({ isNow }) => isNow),
    [true, true, true, true, false],
  );
});

test("a fifth answer waits until one of the four is read; those of another upstream do not", (t) => fifthWaits(t));

test("a reload brings no further turns", (t) =>
  fifthWaits(t, (dispatcher, base) =>
    dispatcher.replace(byName(["east", "west"].map((name) => upstream(name, base, { maxConcurrency: 30 })))),
  ));

/** @param whileFour is called while four answers are being read. */
async function fifthWaits(
  t: TestContext,
  whileFour: (dispatcher: Dispatcher, base: string) => void = () => {},
): Promise<void> {
  const slow: ServerResponse[] = [];
  const fourBegun = Promise.withResolvers<void>();
  const base = await httpServer(t, (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "application/json" });
    if (request.url?.endsWith("/large")) response.end(LARGE);
    else if (request.url?.endsWith("/small")) response.end("{}");
    else if (slow.push(response) === 4) fourBegun.resolve();
  });
  const both = ["east", "west"].map((name) => upstream(name, base));
  const { dispatcher } = rig(t, both);
  const answered: string[] = [];
  const question = async (name: string, suffix: string) => {
    const made = dispatcher.run(
      ask([route(name)], {
        ...{ stream: false, readsInTurn: "by_gateway", method: "GET", pathSuffix: suffix },
        encodeFor: () => ({ body: new Uint8Array(), token: { chunks: [], model: "" } }),
      }),
    );
    assertAnswered(await made);
    answered.push(name + suffix);
  };
  const four = [1, 2, 3, 4].map((number) => question("east", `/slow${number}`));
  await fourBegun.promise;
  for (const response of slow) await new Promise((resolve) => response.write('{"text":"', resolve));
  whileFour(dispatcher, base);
  await question("west", "/large");
  const fifth = question("east", "/large");
  // The fifth would be answered during these if it were read.
  for (let at = 0; at < OTHERS; at++) await question("west", "/large");
  await question("east", "/small");
  assert.deepEqual(answered, ["west/large", ...Array(OTHERS).fill("west/large"), "east/small"]);
  const last = slow[0] as ServerResponse;
  last.end('"}');
  await once(last, "finish");
  await fifth;
  assert.equal(answered.at(-1), "east/large");
  for (const response of slow.slice(1)) response.end('"}');
  await Promise.all(four);
}
