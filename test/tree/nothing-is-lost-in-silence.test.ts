/**
 * ARCHITECTURE.md promise 9: every member that the official SDKs can send is carried, mapped, named or refused on its way to
 * another protocol. The members come from the SDKs' type declarations, so that a new version's new member fails here until
 * somebody has looked at it (`npm run members`); the words come from the gateway, which is sent a request with each.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { FILE, translatedMembersDocument } from "./sdk/page.ts";

test("docs/translated-members.md says what the gateway does with every member of the SDKs", () => {
  assert.equal(readFileSync(FILE, "utf8"), translatedMembersDocument(), "`npm run members` writes the tables");
});
