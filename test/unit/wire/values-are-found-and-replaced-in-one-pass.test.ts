/** Ids of large answers are found and replaced by their places, without a pass for each (docs/decisions/stateful-upstreams-get-wrapped-ids.md). */
import assert from "node:assert/strict";
import test from "node:test";
import { findPlaces, replacePlaces, type WantedPlaces } from "../../../src/wire/json.ts";

const ITEM: WantedPlaces<string> = {
  values: new Map([["id", "item"]]),
  inner: new Map([["in", { isList: false, wanted: { values: new Map([["id", "deep"]]) } }]]),
};
const WANTED: WantedPlaces<string> = {
  values: new Map([["id", "own"]]),
  inner: new Map([["list", { isList: true, wanted: ITEM }]]),
};

/** The text with each wanted value replaced by its kind. */
function replaced(text: string, wanted = WANTED): string {
  const body = Buffer.from(text);
  return Buffer.from(replacePlaces(body, findPlaces(body, wanted), (kind) => `<${kind}>`)).toString();
}

test("wanted values are replaced wherever they are, and no other byte", () => {
  const rows = [
    ['{"id":"a"}', '{"id":<own>}'],
    [' { "x" : {"id":1} , "id" : "a" } ', ' { "x" : {"id":1} , "id" : <own> } '],
    [
      '{"list":[{"id":1},{"in":{"id":2},"id":3}, 4 ,"id",[{"id":5}]],"id":{"id":6}}',
      '{"list":[{"id":<item>},{"in":{"id":<deep>},"id":<item>}, 4 ,"id",[{"id":5}]],"id":<own>}',
    ],
    ['{"\\u0069d":"a"}', '{"\\u0069d":<own>}'],
    ['{"list":{"x":[{"id":1}]},"id":"a"}', '{"list":{"x":[{"id":1}]},"id":<own>}'],
    ['{"t":"\\"id\\":\\"a\\"","id":"\\\\"}', '{"t":"\\"id\\":\\"a\\"","id":<own>}'],
  ] as const;
  for (const [text, wanted] of rows) assert.equal(replaced(text), wanted);
});

test("if a name occurs twice, its last value counts, with all that is in it", () => {
  assert.equal(
    replaced('{"id":1,"list":[{"id":2}],"id":3,"list":[{"id":4,"id":5}]}'),
    '{"id":1,"list":[{"id":2}],"id":<own>,"list":[{"id":4,"id":<item>}]}',
  );
  // The places come in the order of the text, and not of the names.
  assert.equal(replaced('{"id":1,"list":[{"id":2}],"id":3}'), '{"id":1,"list":[{"id":<item>}],"id":<own>}');
});

test("a value of another kind than was expected is skipped, and a text without a place stays the same bytes", () => {
  for (const text of [
    "[]",
    "3",
    '"id"',
    "{}",
    '{"list":{"id":1}}',
    '{"list":[{"in":[{"id":1}]}]}',
    '{"list":[]}',
    '{"list":null}',
  ]) {
    const body = Buffer.from(text);
    assert.equal(
      replacePlaces(body, findPlaces(body, WANTED), () => "x"),
      body,
      text,
    );
  }
});

test("a value for which there is nothing else stays", () => {
  const body = Buffer.from('{"id":"a","list":[{"id":"b"}]}');
  const made = replacePlaces(body, findPlaces(body, WANTED), (kind, raw) =>
    kind === "item" ? `[${Buffer.from(raw)}]` : undefined,
  );
  assert.equal(Buffer.from(made).toString(), '{"id":"a","list":[{"id":["b"]}]}');
});
