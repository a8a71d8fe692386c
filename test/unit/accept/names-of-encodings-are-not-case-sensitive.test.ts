/**
 * The names of charsets and content codings are not case-sensitive (RFC 9110 sections 8.3.2 and 8.4.1), and some clients
 * write the charset as utf8. A body that is plain JSON in UTF-8 is read, however its client writes that.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { CHAT_BODY, request, startEcho } from "./echo.ts";

test("an identity coding and a charset of UTF-8 are accepted in any spelling", async (t) => {
  const { target } = await startEcho(t);
  for (const headers of [
    ["Content-Type: application/json", "Content-Encoding: Identity"],
    ["Content-Type: Application/JSON; Charset=UTF8"],
    ["Content-Type: application/json; charset=utf8"],
  ]) {
    const length = `Content-Length: ${CHAT_BODY.length}`;
    const [answer] = await exchange(target, request({ headers: [length, ...headers], body: CHAT_BODY }));
    assert.equal(answer?.status, 200, headers.join());
  }
});
