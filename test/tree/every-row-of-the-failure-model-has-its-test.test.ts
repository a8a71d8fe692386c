/** `docs/failure-model.md` contains every row, and the tests that it names say which rows they test. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import test from "node:test";

const read = (file: string): string => readFileSync(file, "utf8");
const numbered = (letter: string, count: number) => Array.from({ length: count }, (_, at) => `${letter}${at + 1}`);
const ROWS: readonly string[] = [
  ...numbered("A", 8),
  ...numbered("B", 13),
  ...numbered("C", 11),
  ...numbered("D", 8),
  ...numbered("E", 2),
  ...numbered("F", 5),
  ...numbered("G", 4),
  ...numbered("H", 7),
  ...numbered("", 84),
];
/** The maximum number of exceptions. An exception is a row that cannot be tested, never one that is not tested yet. */
const EXCEPTIONS_MAX = 3;

const [table = "", exceptions = ""] = read("docs/failure-model.md").split("\n## Exceptions\n");
const tested = new Map([...table.matchAll(/^\| ([A-H]?\d+) \| [^|]+ \| ([^|]+) \|$/gm)].map((row) => [row[1], row[2]]));
const excepted = new Map([...exceptions.matchAll(/^\| ([A-H]?\d+) \| ([^|]+) \|$/gm)].map((row) => [row[1], row[2]]));

test("every row is in the table or among the exceptions, once", () => {
  assert.deepEqual([...tested.keys(), ...excepted.keys()].sort(), [...ROWS].sort());
  assert.ok(excepted.size <= EXCEPTIONS_MAX, `${excepted.size} exceptions`);
  for (const [row, reason] of excepted) assert.ok((reason ?? "").trim().length > 20, `${row} has no reason`);
});

test("every test that the table names exists and names its row", () => {
  const wrong: string[] = [];
  for (const [row, cell] of tested) {
    const files = [...(cell ?? "").matchAll(/`(test\/[^`]+)`/g)].map((match) => match[1] as string);
    if (files.length === 0) wrong.push(`${row}: no test`);
    // A test that only reads documents proves nothing about failures.
    if (files.some((file) => file.startsWith("test/tree/every-row"))) wrong.push(`${row}: its test is this one`);
    for (const file of files) {
      if (!existsSync(file)) wrong.push(`${row}: there is no ${file}`);
      else if (!rowsNamedIn(file).has(row as string)) wrong.push(`${row}: ${file} does not name it`);
    }
  }
  assert.deepEqual(wrong, []);
});

/** Rows in the file's name (`c1-70-…`, `44-to-59-…`), in its words ("rows C1, C3 and 60 to 62"), or before a title's colon. */
function rowsNamedIn(file: string): ReadonlySet<string> {
  const prefix = /^(?:[a-h]?\d+-(?:to-)?)+/i.exec(file.slice(file.lastIndexOf("/") + 1))?.[0] ?? "";
  const text = read(file);
  const lists = [
    prefix.toUpperCase().replaceAll("-TO-", " to "),
    ...[...text.matchAll(/\brows? ((?:[A-H]?\d+(?:, | and | to )?)+)/gi)].map((match) => match[1] as string),
    ...[...text.matchAll(/["`]([A-H]?\d+): /g)].map((match) => match[1] as string),
  ];
  return new Set(lists.flatMap(rowsOfList));
}

function rowsOfList(list: string): string[] {
  const single = list.match(/[A-H]?\d+/g) ?? [];
  const spans = [...list.matchAll(/([A-H]?)(\d+) to [A-H]?(\d+)/g)].flatMap(([, letter, from, to]) =>
    Array.from({ length: Number(to) - Number(from) + 1 }, (_, at) => `${letter}${Number(from) + at}`),
  );
  return [...single, ...spans];
}
