/**
 * ARCHITECTURE.md promise 9: every member that the official SDKs can send is carried, mapped, named or refused on its
 * way to another protocol. The members come from the SDKs' type declarations, so a new member of a new version fails
 * here until it has been reviewed (`npm run members`). The words come from the gateway, to which a request with each
 * member is sent.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { FILE, translatedMembersDocument } from "./sdk/page.ts";
import { type Direction, judgedOnPoorRoutes, judgedRequests } from "./sdk/requests.ts";

test("docs/translated-members.md says what the gateway does with every member of the SDKs", () => {
  assert.equal(readFileSync(FILE, "utf8"), translatedMembersDocument(), "`npm run members` writes the tables");
});

test("every cell of docs/translated-members.md has a valid word", () => {
  const rows = readFileSync(FILE, "utf8")
    .split("## What is counted\n")[1]
    ?.split("\n")
    .filter((line) => line.startsWith("| `"));
  assert.ok(rows && rows.length > 300, String(rows?.length));
  const word = /^(carried|mapped|named|refused)(, (mapped|named|refused))*$/;
  const blank = rows.filter(
    (row) =>
      !row
        .split(" | ")
        .slice(2)
        .every((cell) => word.test(cell.replace(/ \|$/, ""))),
  );
  assert.deepEqual(blank, []);
});

const ROUTES: readonly (readonly [route: string, judged: () => readonly Direction[]])[] = [
  ["the best of servers", judgedRequests],
  ["the poorest of servers", judgedOnPoorRoutes],
];

for (const [route, judged] of ROUTES) {
  test(`on routes to ${route} no member is lost, and what is named or refused has its own name`, () => {
    const faults = judged().flatMap(({ client, upstream, judged: rows }) =>
      rows.flatMap(({ path, fault }) => (fault === undefined ? [] : [`${client} to ${upstream}: ${path}: ${fault}`])),
    );
    assert.deepEqual(faults, []);
  });
}
