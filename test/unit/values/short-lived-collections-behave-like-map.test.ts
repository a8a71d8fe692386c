/** Collections for short-lived members of requests behave like Map, and keep nothing of removed members. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TransientList, TransientMap } from "../../../src/values/collections/transient.ts";
import { outlivingScriptMb } from "../../rig/collections.ts";

/** Numbers below `max`, the same in each run. */
function chance(seed: number): (max: number) => number {
  let state = seed;
  return (max) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % max;
  };
}

test("a map answers like Map, whatever the names are", () => {
  const names = ["a", "b", "7", "4294967294", "0123456789", "__proto__", "constructor", "hasOwnProperty", "", "é"];
  for (let seed = 0; seed < 200; seed++) {
    const below = chance(seed);
    const [ours, map] = [new TransientMap<string, number>(), new Map<string, number>()];
    for (let i = 0; i < 100; i++) {
      const name = names[below(names.length)] as string;
      if (below(2) === 0) assert.equal(ours.delete(name), map.delete(name), name);
      else {
        ours.set(name, i);
        map.set(name, i);
      }
      assert.equal(ours.size, map.size);
      assert.equal(ours.has(name), map.has(name));
      assert.equal(ours.get(name), map.get(name));
      assert.equal(ours.first, map.values().next().value);
      assert.deepEqual(ours.entries(), [...map]);
      assert.deepEqual(ours.values(), [...map.values()]);
    }
  }
});

test("a map answers like Map, however many members it has, and whether or not their names end alike", () => {
  for (const nameOf of [(i: number) => `request ${i}`, (i: number) => `${i} of the same end`]) {
    const below = chance(7);
    const [ours, map] = [new TransientMap<string, number>(), new Map<string, number>()];
    for (let i = 0; i < 4_000; i++) {
      const name = nameOf(below(500));
      if (below(3) === 0) assert.equal(ours.delete(name), map.delete(name), name);
      else {
        ours.set(name, i);
        map.set(name, i);
      }
      assert.equal(ours.get(name), map.get(name), name);
      assert.equal(ours.size, map.size);
    }
    assert.deepEqual(ours.entries(), [...map]);
    for (const [name, value] of map) assert.equal(ours.get(name), value, name);
  }
});

test("a list keeps its members in order of insertion, and removes each once", () => {
  const list = new TransientList<string>();
  assert.equal(list.first, undefined);
  const [one, two, three] = ["one", "two", "three"].map((value) => list.add(value)) as [never, never, never];
  assert.deepEqual([list.size, list.first, list.values()], [3, "one", ["one", "two", "three"]]);
  assert.equal(list.delete(two), true);
  assert.equal(list.delete(two), false);
  assert.deepEqual(two, { value: undefined, before: undefined, after: undefined }, "a removed entry keeps no links");
  assert.deepEqual([list.size, list.values()], [2, ["one", "three"]]);
  assert.equal(list.delete(one), true);
  assert.equal(list.first, "three");
  assert.equal(list.delete(three), true);
  assert.equal(list.delete(three), false);
  assert.deepEqual([list.size, list.first, list.values()], [0, undefined, []]);
  list.add("four");
  assert.deepEqual(list.values(), ["four"]);
});

/** @returns how many megabytes are kept after 400 MB of members were added, each of which is removed forty later. */
function outliving(make: string, take: string, leave: string): number {
  const script = `
    const { TransientList, TransientMap } = await import("${new URL("../../../src/values/collections/transient.ts", import.meta.url)}");
    const members = ${make};
    const here = [];
    for (let i = 0; i < 100_000; i++) {
      const name = "member " + i;
      const value = Array.from({ length: 100 }, (_, at) => ({ at, i }));
      here.push(${take});
      if (here.length <= 40) continue;
      const gone = here.shift();
      ${leave};
    }`;
  return outlivingScriptMb(script);
}

test("removed members are collected with the young generation, while Map moves them to the old one", () => {
  const ofMap = outliving("new Map()", "(members.set(name, value), name)", "members.delete(gone)");
  const ofOurs = outliving("new TransientMap()", "(members.set(name, value), name)", "members.delete(gone)");
  const ofList = outliving("new TransientList()", "members.add(value)", "members.delete(gone)");
  // If this fails, V8 has fixed it, and transient.ts is no longer needed.
  assert.ok(ofMap > 40, `Map: ${ofMap} MB`);
  assert.ok(ofOurs < 20, `TransientMap: ${ofOurs} MB`);
  assert.ok(ofList < 20, `TransientList: ${ofList} MB`);
});
