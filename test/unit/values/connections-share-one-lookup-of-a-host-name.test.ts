/** docs/failure-model.md rows C1 and H7: a slow name server does not use up the threads that resolve host names. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type AskSystem, sharedLookup } from "../../../src/values/program/shared-lookup.ts";
import { FakeClock } from "../dispatch/rig.ts";

const ADDRESSES = [
  { address: "192.0.2.1", family: 4 },
  { address: "2001:db8::1", family: 6 },
];
const OTHERS = [{ address: "2001:db8::2", family: 6 }];

function failed(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code });
}

/** A lookup whose queries the test answers. */
function scene() {
  const clock = new FakeClock();
  const asked: Parameters<AskSystem>[2][] = [];
  const lookup = sharedLookup(clock, (hostname, _, answer) => {
    assert.equal(hostname, "name.test");
    asked.push(answer);
  });
  const look = (all = true) =>
    new Promise((resolve) => {
      lookup("name.test", { all }, (error, address, family) =>
        resolve(error?.message ?? (all ? address : [address, family])),
      );
    });
  return { clock, asked, look };
}

test("concurrent lookups share one query, an answer is cached for ten seconds, and an error is not cached", async () => {
  const { clock, asked, look } = scene();
  const failing = [look(), look(false)];
  assert.equal(asked.length, 1);
  asked[0]?.(failed("ENOTFOUND"), []);
  assert.deepEqual(await Promise.all(failing), ["ENOTFOUND", "ENOTFOUND"]);
  const waiting = [look(), look(false), look()];
  assert.equal(asked.length, 2);
  asked[1]?.(null, ADDRESSES);
  assert.deepEqual(await Promise.all(waiting), [ADDRESSES, ["192.0.2.1", 4], ADDRESSES]);
  clock.advance(9_999);
  assert.deepEqual(await look(false), ["192.0.2.1", 4]);
  assert.equal(asked.length, 2);
  clock.advance(1);
  const again = look();
  assert.equal(asked.length, 3);
  asked[2]?.(null, OTHERS);
  assert.deepEqual(await again, OTHERS);
  assert.deepEqual(await look(false), ["2001:db8::2", 6]);
});

suite("name servers that fail leave a name its last addresses", () => {
  async function known() {
    const made = scene();
    const first = made.look();
    made.asked[0]?.(null, ADDRESSES);
    await first;
    made.clock.advance(10_000);
    return made;
  }

  test("if they answer with an error of their own, for ten seconds", async () => {
    const { clock, asked, look } = await known();
    const later = look();
    asked[1]?.(failed("EAI_AGAIN"), []);
    assert.deepEqual(await later, ADDRESSES);
    clock.advance(9_999);
    assert.deepEqual(await look(), ADDRESSES);
    assert.equal(asked.length, 2);
    clock.advance(1);
    const next = look();
    asked[2]?.(null, OTHERS);
    assert.deepEqual(await next, OTHERS);
  });

  test("if they are silent for a second, until they answer", async () => {
    const { clock, asked, look } = await known();
    const later = [look(), look()];
    clock.advance(1_000);
    assert.deepEqual(await Promise.all(later), [ADDRESSES, ADDRESSES]);
    clock.advance(60_000);
    assert.deepEqual(await look(), ADDRESSES);
    assert.equal(asked.length, 2, "one query at a time");
    asked[1]?.(null, OTHERS);
    assert.deepEqual(await look(), OTHERS);
    clock.advance(10_000);
    const next = look();
    assert.equal(asked.length, 3, "a later lookup asks again");
    asked[2]?.(null, ADDRESSES);
    assert.deepEqual(await next, ADDRESSES);
  });

  test("but not if they answer that there is no such name", async () => {
    const { asked, look } = await known();
    const later = look();
    asked[1]?.(failed("ENOTFOUND"), []);
    assert.equal(await later, "ENOTFOUND");
    const next = look();
    asked[2]?.(failed("EAI_AGAIN"), []);
    assert.equal(await next, "EAI_AGAIN");
  });

  test("and a name without addresses waits for the answer", async () => {
    const { clock, asked, look } = scene();
    const first = look();
    clock.advance(60_000);
    asked[0]?.(null, ADDRESSES);
    assert.deepEqual(await first, ADDRESSES);
  });
});
