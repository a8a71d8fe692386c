/**
 * docs/failure-model.md rows 44 to 47: a body that is read in steps gives the same result as one read at once, for any steps.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import {
  isJsonFault,
  JSON_LIMITS,
  type Pause,
  readJson,
  readJsonInSteps,
  type StepSizes,
  scanJson,
  scanJsonInSteps,
} from "../../../src/wire/json.ts";
import { JsonScanner } from "../../../src/wire/json-scan.ts";

const NEVER: Pause = () => undefined;

/** JSON that is hard to cut: escapes, surrogates, names of prototypes, repeated names, white space. */
const hardText = fc.array(fc.constantFrom('"', "\\", "/", "\n", "é", "😀", "\ud83d", "\u0000", "a", "[", "}", ","), {
  maxLength: 30,
});
const name = fc.oneof(fc.constantFrom("__proto__", "constructor", "a", "1", "0", "", "é\n"), fc.string());
const leaf = fc.oneof(
  fc.constantFrom(null, true, false, -0, 1e21, 5e-324),
  fc.integer(),
  hardText.map((parts) => parts.join("")),
);
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("value"), { maxLength: 8 }),
    fc.array(fc.tuple(name, tie("value")), { maxLength: 8 }).map((members) => ({ members })),
  ),
})).value;
const body = fc.tuple(
  fc.uniqueArray(name, { maxLength: 8 }),
  fc.array(value, { minLength: 8, maxLength: 8 }),
  fc.nat(),
);

/** Written as text by the test itself: a repeated name must be kept, and there are blanks wherever JSON allows them. */
function written(node: unknown, blank: () => string): string {
  const around = (text: string) => blank() + text + blank();
  if (Array.isArray(node)) return `[${node.map((item) => around(written(item, blank))).join(",") || blank()}]`;
  const members = (node as { members?: [string, unknown][] } | null)?.members;
  if (!members) return Object.is(node, -0) ? "-0" : JSON.stringify(node);
  const all = members.map(([key, held]) => `${around(JSON.stringify(key))}:${around(written(held, blank))}`);
  return `{${all.join(",") || blank()}}`;
}

function textOf(names: readonly string[], values: readonly unknown[], seed: number): string {
  let state = seed;
  const blank = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return " \n\t".repeat(state % 7 === 0 ? (state >> 8) % 20 : 0);
  };
  return written({ members: names.map((one, i) => [one, values[i]]) }, blank);
}

const sizes = fc.record({
  scan: fc.integer({ min: 1, max: 40 }),
  parse: fc.integer({ min: 1, max: 60 }),
  text: fc.integer({ min: 1, max: 20 }),
});

test("property: a body read in steps equals the result of JSON.parse, including the order of names", async () => {
  await fc.assert(
    fc.asyncProperty(body, sizes, async ([names, values, seed], step: StepSizes) => {
      const bytes = Buffer.from(textOf(names, values, seed));
      const read = await readJsonInSteps(bytes, NEVER, JSON_LIMITS, step);
      const parsed: unknown = JSON.parse(bytes.toString());
      assert.ok(!("fault" in read), JSON.stringify(read));
      assert.deepStrictEqual(read.json, parsed);
      assert.equal(JSON.stringify(read.json), JSON.stringify(parsed));
      assert.deepStrictEqual(read.scan, scanJson(bytes));
    }),
    { numRuns: 300 },
  );
});

test("property: a broken or forbidden body has the same fault in steps of any size", async () => {
  const limits = { depthMax: 6, tokensMax: 40, membersMax: 5, nameBytesMax: 12, numberCharsMax: 10 };
  await fc.assert(
    fc.asyncProperty(body, fc.nat(), fc.nat(), sizes, async ([names, values, seed], at, byte, step) => {
      const bytes = Buffer.from(textOf(names, values, seed));
      bytes[at % bytes.length] = byte % 256;
      const scanner = new JsonScanner(bytes, limits, { longBytes: step.parse });
      let scan = scanner.advance(step.scan);
      while (!scan) scan = scanner.advance(step.scan);
      assert.deepStrictEqual(scan, scanJson(bytes, limits));
      const read = await readJsonInSteps(bytes, NEVER, limits, step);
      const atOnce = readJson(bytes, limits);
      assert.deepStrictEqual("fault" in read ? read : read.json, "fault" in atOnce ? atOnce : atOnce.json);
      assert.deepStrictEqual(await scanJsonInSteps(bytes, NEVER, limits), scan);
    }),
    { numRuns: 500 },
  );
});

test("a reader pauses within a container, a text, a nest and a gap, however large they are", async () => {
  const bodies = {
    numbers: `{"a":[${"1,".repeat(100_000)}1]}`,
    members: `{"a":{${Array.from({ length: 20_000 }, (_, i) => `"k${i}":${i}`).join()}}}`,
    text: `{"a":"${"x".repeat(200_000)}"}`,
    escapes: `{"a":"${"\\n\\u00e9é".repeat(20_000)}"}`,
    nests: `{"a":[${Array.from({ length: 100 }, () => `${"[".repeat(100) + "1,".repeat(2_000)}1${"]".repeat(100)}`).join()}]}`,
    gaps: `{"a":[1${" ".repeat(200_000)},2]}`,
  };
  for (const [shape, text] of Object.entries(bodies)) {
    let pauses = 0;
    const pause = async () => void pauses++;
    const read = await readJsonInSteps(Buffer.from(text), pause, JSON_LIMITS, {
      scan: 4_096,
      parse: 1_024,
      text: 4_096,
    });
    assert.ok(!("fault" in read));
    assert.deepStrictEqual(read.json, JSON.parse(text), shape);
    assert.ok(pauses >= text.length / 4_200, `${shape}: ${pauses} pauses in ${text.length} bytes`);
  }
});

test("the text between two cuts is one long value, or short values of limited total length", () => {
  const long = `"${"x".repeat(200)}"`;
  const text = `{"a":[1,2,${long},3,${long},${long},{"b":[${"4,".repeat(100)}5]},6,${"7,".repeat(300)}8]}`;
  const scanner = new JsonScanner(Buffer.from(text), JSON_LIMITS, { longBytes: 100 });
  assert.ok(!isJsonFault(scanner.advance(text.length + 1) as never));
  const array = scanner.longValues.get(text.indexOf("["));
  assert.ok(array);
  const edges = [text.indexOf("["), ...array.cuts, array.end - 1];
  const pieces = edges.slice(1).map((edge, i) => text.slice((edges[i] as number) + 1, edge));
  assert.deepEqual(pieces.slice(0, 5), ["1,2", long, "3", long, long]);
  for (const piece of pieces.filter((one) => !one.includes("x") && !one.includes("b"))) {
    assert.ok(piece.length <= 200, `${piece.length}`);
  }
  assert.equal(pieces.join(","), text.slice((edges[0] as number) + 1, edges.at(-1)));
});

test("numbers, names and members are refused where they exceed their limits", () => {
  const faultOf = (text: string) => {
    const result = scanJson(Buffer.from(text));
    return isJsonFault(result) ? `${result.fault} at ${result.at}` : "accepted";
  };
  const { membersMax, nameBytesMax, numberCharsMax } = JSON_LIMITS;
  const members = (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join()}}`;
  assert.equal(faultOf(members(membersMax)), "accepted");
  assert.match(faultOf(members(membersMax + 1)), /^too_many_members/);
  assert.match(faultOf(members(10_000).slice(0, 10_000)), /^too_many_members at [0-9]{4}$/);
  assert.equal(faultOf(`{"a":${members(membersMax + 1)}}`), "accepted", "limited only at the top level");
  for (const wrap of [(text: string) => text, (text: string) => `{"a":[${text}]}`]) {
    assert.equal(faultOf(wrap(`{"${"x".repeat(nameBytesMax)}":1}`)), "accepted");
    assert.match(faultOf(wrap(`{"${"x".repeat(nameBytesMax + 1)}":1}`)), /^too_long/);
    assert.match(
      faultOf(wrap(`{"${"\\n".repeat(nameBytesMax)}`)),
      /^too_long/,
      "the limit applies before the end of the name is found",
    );
  }
  assert.equal(faultOf(`{"a":${"1".repeat(numberCharsMax)}}`), "accepted");
  for (const number of ["1".repeat(30_000), `0.${"1".repeat(30_000)}`, `-${"9".repeat(numberCharsMax)}`]) {
    assert.equal(faultOf(`{"a":${number}}`), "too_long at 5");
  }
});
