// docs/failure-model.md row B13: a script is stopped before each of its commands, and what it has written until then stays in
// the store.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openStore } from "../../../src/store/open.ts";
import { loadScripts } from "../../../src/store/redis/scripts.ts";
import { Secret } from "../../../src/values/secret.ts";
import { PATIENT } from "./benches.ts";
import {
  differences,
  type Keyspace,
  NOTICES_OF_SCENES,
  openTheatre,
  type Played,
  play,
  SCENES,
  type Scene,
  TAG,
  type Theatre,
} from "./stops.ts";
import { documented, tablesOf } from "./stops-table.ts";

let theatre: Theatre;
before(async () => {
  const open = (url: string) =>
    openStore({ kind: "redis", url: new Secret(url) }, { ...PATIENT, notices: NOTICES_OF_SCENES });
  theatre = await openTheatre(Object.values(loadScripts()), open);
});
after(() => theatre.close());

const all = new Map<Scene, Played>();

for (const scene of SCENES) {
  test(`${scene.script}, ${scene.name}: after a stop the next script keeps the old state, or completes the new one if anything was written`, async () => {
    const played = await play(theatre, scene);
    all.set(scene, played);
    assert.ok(played.stops.length > 0, "the script is stopped at least once");
    for (const { at, left, finished, repeated } of played.stops) {
      const others = unlike(repeated, played.after).filter(
        ([place]) => !scene.orphan || !place?.startsWith(`{a:${TAG}} `),
      );
      assert.deepEqual(others, [], `${at}: the repeated call`);
      if (scene.step) continue;
      const begun = differences(left, played.before).length > 0;
      const whole = begun ? [played.swept, played.after] : [played.before];
      const found = whole.map((state) => unlike(finished, state)).sort((a, b) => a.length - b.length)[0];
      assert.deepEqual(found, [], `${at}: after the next script, ${begun ? "something" : "nothing"} written`);
    }
  });
}

test("docs/redis-scripts.md has the tables of the stops seen here", () => {
  assert.equal(all.size, SCENES.length);
  assert.equal(documented(), tablesOf(all), "`node test/unit/store/stops-table.ts --write` writes them again");
});

/**
 * Places in which a keyspace differs from the expected one. The mark of a request whose hold was released as expired before its
 * charge does not have that hold, just as if another call had released it.
 */
function unlike(found: Keyspace, wanted: Keyspace): (string | undefined)[][] {
  const shown = (state: Keyspace, place: string) => {
    const value = state.get(place);
    return place.includes(":d:") ? value?.replace(/^\["(\d+)",".*?",(?="\d*"\])/, '["$1","",') : value;
  };
  return differences(found, wanted)
    .map((place) => [place, shown(found, place), shown(wanted, place)])
    .filter(([, a, b]) => a !== b);
}
