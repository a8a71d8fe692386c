/**
 * What stopped scripts leave in the store, as the tables of docs/redis-scripts.md: `node test/unit/store/stops-table.ts
 * --write` writes them there. Without it they are printed; `--tree DIR` does it for the scripts of another checkout.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type * as open from "../../../src/store/open.ts";
import type * as scripts from "../../../src/store/redis/scripts.ts";
import { Secret } from "../../../src/values/secret.ts";
import { programOptions } from "../../rig/program-options.ts";
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
} from "./stops.ts";

/** A description of a place in the keyspace, for people; the first that matches. */
const AREAS: readonly (readonly [RegExp, string])[] = [
  [/ todo$/, "todo"],
  [/^\{a:.*\} bal$/, "balance"],
  [/^\{a:.*\} spent$/, "sum spent"],
  [/^\{a:.*\} topped$/, "sum topped up"],
  [/^\{a:.*\} held$/, "sum held"],
  [/^\{a:.*\} (conc|c:)/, "requests in flight"],
  [/^\{a:.*\} seq$/, "line number"],
  [/^\{a:.*\} tb:/, "bucket"],
  [/^\{a:.*\} (e|ep|eh|es)\b/, "card"],
  [/^\{a:.*\} (k|ki):/, "key"],
  [/^\{a:.*\} plan/, "plan"],
  [/^\{a:.*\} (n:|nm:|nseq|ntaken)/, "notice"],
  [/^\{a:.*\} nb/, "threshold"],
  [/^\{a:.*\} rename$/, "note of the rename"],
  [/^\{a:.*\}:h /, "hold"],
  [/^\{a:.*\}:hx /, "expiry"],
  [/^\{a:.*\}:d:/, "settled mark"],
  [/^\{a:.*\}:l /, "ledger"],
  [/^\{a:.*\}:lo /, "opening line"],
  [/^\{a:.*\}:pay /, "payment"],
  [/^\{a:.*\}:day:/, "sum of the day"],
  [/^\{a:.*\}:use:/, "counts of the day"],
  [/^\{a:.*\}:idem:/, "idempotency key"],
  [/^\{a:.*\}:sign-ins /, "sign-in"],
  [/^\{a:/, "account"],
  [/^idx:accounts /, "name"],
  [/^\{idx:accounts\}:names /, "name in order"],
  [/^idx:codes /, "index of codes"],
  [/^\{idx:codes\}:ids /, "ids in order"],
  [/^\{idx:codes\}:claims /, "note of the claim"],
  [/^\{idx:codes\}:bc:/, "codes of the batch"],
  [/^\{idx:codes\}:b:/, "batch"],
  [/^\{idx:codes\}:batches /, "batch in order"],
  [/^c:/, "code"],
  [/^epoch:\{notices\}/, "who delivers"],
  [/^epoch:/, "mark of the history"],
];

function areasOf(places: readonly string[]): string[] {
  const found = new Set(places.map((place) => AREAS.find(([pattern]) => pattern.test(place))?.[1] ?? place));
  return AREAS.map(([, area]) => area).filter((area) => found.has(area));
}

/** One line of the table: a command that did not run, after others had written something. */
interface Row {
  readonly at: string;
  readonly there: readonly string[];
  readonly lacking: readonly string[];
  /** What is wrong after the repeated call; empty if the state is as without a stop. */
  readonly wrong: readonly string[];
  readonly answer: string;
}

function rowsOf({ before, after, stops }: Played): Row[] {
  return stops.flatMap(({ at, left, repeated, answer }): Row[] => {
    const moved = differences(before, after);
    const there = areasOf(moved.filter((place) => left.get(place) === after.get(place)));
    const todo = areasOf(differences(left, before)).includes("todo") ? ["todo"] : [];
    if (there.length === 0 && todo.length === 0) return [];
    const lacking = areasOf(moved.filter((place) => left.get(place) !== after.get(place)));
    return [
      {
        at: spelled(at),
        there: [...there, ...todo],
        lacking,
        wrong: areasOf(wrongPlaces(repeated, after)),
        answer: outcomeOf(answer),
      },
    ];
  });
}

/** A mark whose hold was released as expired before its charge does not have that hold, which is equivalent. */
function wrongPlaces(found: Keyspace, wanted: Keyspace): string[] {
  const bare = (text: string | undefined) => text?.replace(/^\["(\d+)",".*?",(?="\d*"\])/, '["$1","",');
  return differences(found, wanted).filter((place) => bare(found.get(place)) !== bare(wanted.get(place)));
}

const spelled = (at: string): string =>
  at
    .replace(/\{a:\w+\}/, "{a:TAG}")
    .replace(/:d:\w+/, ":d:ID")
    .replace(/:day:.*/, ":day:DAY")
    .replace(/:use:.*/, ":use:DAY")
    .replace(/:idem:\w+/, ":idem:HASH")
    .replace(/c:[0-9a-f]{64}/, "c:HASH");

function outcomeOf(answer: unknown): string {
  const outcome = (answer as { outcome?: string } | undefined)?.outcome;
  return outcome ?? (typeof answer === "string" ? answer : "");
}

/** Scenes whose commands are listed one by one: each script once, on its longest path. */
const TOLD = [
  "a request under an idempotency key",
  "a hold on a balance",
  "a charge under an idempotency key",
  "a top-up",
  "a card",
  "the beginning of a ledger",
];

/** The tables of a checkout. */
export function tablesOf(played: ReadonlyMap<Scene, Played>): string {
  const summary = [
    "| script | case | commands | stops that leave a part | repaired by the repeated call | wrong permanently |",
    "| --- | --- | ---: | ---: | ---: | ---: |",
  ];
  const told = [
    "| script | stopped before | written | missing | after the repeated call |",
    "| --- | --- | --- | --- | --- |",
  ];
  for (const [scene, one] of played) {
    const rows = rowsOf(one);
    const partial = rows.filter(({ lacking, there }) => lacking.length > 0 || there.includes("todo"));
    const wrong = partial.filter((row) => row.wrong.length > 0);
    summary.push(
      `| ${scene.script} | ${scene.name} | ${one.stops.length} | ${partial.length} | ${partial.length - wrong.length} | ${wrong.length} |`,
    );
    if (!TOLD.includes(scene.name)) continue;
    for (const row of partial) {
      const end = row.wrong.length === 0 ? "complete, once" : `**wrong**: ${row.wrong.join(", ")}`;
      const answer = row.answer === "" ? "" : ` (\`${row.answer}\`)`;
      told.push(
        `| ${scene.script} | \`${row.at}\` | ${row.there.join(", ")} | ${row.lacking.join(", ")} | ${end}${answer} |`,
      );
    }
  }
  return [...summary, "", ...told].join("\n");
}

const DOCUMENT = new URL("../../../docs/redis-scripts.md", import.meta.url);
const [BEGIN, END] = [
  "<!-- tables: node test/unit/store/stops-table.ts --write -->\n\n",
  "\n\n<!-- end of the tables -->",
];

/** The tables in the document; `replace` writes others in their place. */
export function documented(replace?: string): string {
  const text = readFileSync(DOCUMENT, "utf8");
  const [head = "", rest = ""] = text.split(BEGIN);
  const [tables = "", tail = ""] = rest.split(END);
  if (replace !== undefined) writeFileSync(DOCUMENT, head + BEGIN + replace + END + tail);
  return tables;
}

if (import.meta.main) {
  const { values } = programOptions({
    options: { tree: { type: "string", default: "." }, write: { type: "boolean", default: false } },
  });
  const of = (file: string) => import(pathToFileURL(resolve(values.tree, file)).href);
  const { openStore } = (await of("src/store/open.ts")) as typeof open;
  const { loadScripts } = (await of("src/store/redis/scripts.ts")) as typeof scripts;
  const theatre = await openTheatre(Object.values(loadScripts()), (url) =>
    openStore({ kind: "redis", url: new Secret(url) }, { ...PATIENT, notices: NOTICES_OF_SCENES }),
  );
  try {
    const played = new Map<Scene, Played>();
    for (const scene of SCENES) played.set(scene, await play(theatre, scene));
    if (values.write) documented(tablesOf(played));
    else process.stdout.write(`${tablesOf(played)}\n`);
  } finally {
    await theatre.close();
  }
}
