import assert from "node:assert/strict";
import test from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { CHAT_BODY, request, startEcho } from "./echo.ts";

const BASE = ["Content-Type: application/json", `Content-Length: ${CHAT_BODY.length}`];

/** What the client may claim, whom we trust, and whom we believe. */
const CASES: readonly (readonly [readonly string[], readonly string[], string | undefined])[] = [
  [[], [], "127.0.0.1"],
  [["X-Forwarded-For: 6.6.6.6", "Forwarded: for=6.6.6.6", "X-Real-IP: 6.6.6.6"], [], "127.0.0.1"],
  [["X-Forwarded-For: 9.9.9.9"], ["127.0.0.1/32"], "9.9.9.9"],
  [["X-Forwarded-For: 6.6.6.6, 9.9.9.9"], ["127.0.0.1/32"], "9.9.9.9"],
  [["X-Forwarded-For: 6.6.6.6, 9.9.9.9, 10.0.0.2"], ["127.0.0.1/32", "10.0.0.0/8"], "9.9.9.9"],
  [["X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 9.9.9.9"], ["127.0.0.1/32"], "9.9.9.9"],
  [["X-Forwarded-For: 127.0.0.1"], ["127.0.0.1/32"], "127.0.0.1"],
  [["X-Forwarded-For: nonsense"], ["127.0.0.1/32"], undefined],
  [["X-Real-IP: 6.6.6.6"], ["127.0.0.1/32"], undefined],
];

for (const [claims, trustProxy, expected] of CASES) {
  test(`row 76: ${claims.join(" | ") || "nothing"} through ${trustProxy.join(" ") || "nobody"} is ${expected}`, async (t) => {
    const echo = await startEcho(t, { trustProxy });
    await exchange(echo.target, request({ headers: [...BASE, ...claims] }));
    assert.equal(echo.requests[0]?.clientAddress, expected);
  });
}

test("row 74: only a well-formed traceparent is kept", async (t) => {
  const echo = await startEcho(t);
  const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  for (const value of [good, "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "x", `${good}-x`]) {
    await exchange(echo.target, request({ headers: [...BASE, `traceparent: ${value}`] }));
  }
  assert.deepEqual(
    echo.requests.map((seen) => seen.traceparent),
    [good, undefined, undefined, undefined],
  );
});
