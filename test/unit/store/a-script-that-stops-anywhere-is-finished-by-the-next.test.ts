// docs/failure-model.md row B13: a script stopped ahead of each of its commands, with what it has written left in
// place.
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
  test(`${scene.script}, ${scene.name}: the old state or, once anything was written, the whole of the new one`, async () => {
    const played = await play(theatre, scene);
    all.set(scene, played);
    assert.ok(played.stops.length > 0, "it was stopped at all");
    for (const { at, left, finished, repeated } of played.stops) {
      const others = unlike(repeated, played.after).filter(
        ([place]) => !scene.orphan || !place?.startsWith(`{a:${TAG}} `),
      );
      assert.deepEqual(others, [], `${at}: the repeated call`);
      if (scene.step) continue;
      const begun = differences(left, played.before).length > 0;
      const whole = begun ? [played.swept, played.after] : [played.before];
      const found = whole.map((state) => unlike(finished, state)).sort((a, b) => a.length - b.length)[0];
      assert.deepEqual(found, [], `${at}: behind the next script, ${begun ? "something" : "nothing"} written`);
    }
  });
}

test("docs/redis-scripts.md has the tables of what was seen", () => {
  assert.equal(all.size, SCENES.length);
  assert.equal(documented(), tablesOf(all), "`node test/unit/store/stops-table.ts --write` writes them anew");
});

/**
 * Places in which a keyspace is not what it should be. The mark of a request whose hold was swept ahead of its charge does
 * not have that hold, as when anybody else had swept it.
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
