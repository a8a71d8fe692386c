import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test from "node:test";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { clientAddress } from "../../../src/accept/identity.ts";
import { exchange } from "../../rig/raw-socket.ts";
import { CHAT_BODY, request, startEcho } from "./echo.ts";

const BASE = ["Content-Type: application/json", `Content-Length: ${CHAT_BODY.length}`];

/** The headers that the client sends, the trusted proxies, and the resulting address. */
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
  test(`row 76: ${claims.join(" | ") || "nothing"} through ${trustProxy.join(" ") || "no trusted proxy"} is ${expected}`, async (t) => {
    const echo = await startEcho(t, { trustProxy });
    await exchange(echo.target, request({ headers: [...BASE, ...claims] }));
    assert.equal(echo.requests[0]?.clientAddress, expected);
  });
}

/**
 * The peer that sends X-Forwarded-For, the value of `trust_proxy`, and the entry that the operator is advised to add.
 */
const UNNAMED: readonly (readonly [string | undefined, readonly string[], string | undefined])[] = [
  ["127.0.0.1", [], "127.0.0.1"],
  ["::ffff:10.1.2.3", ["127.0.0.1/32"], "10.1.2.3"],
  ["172.16.0.9", [], "172.16.0.9"],
  ["192.168.7.7", ["unix"], "192.168.7.7"],
  ["fd00::5", [], "fd00::5"],
  ["100.64.3.3", [], "100.64.3.3"],
  [undefined, ["127.0.0.1/32"], "unix"],
  ["127.0.0.1", ["127.0.0.0/8"], undefined],
  [undefined, ["unix"], undefined],
  // A client from a public address may send any X-Forwarded-For.
  ["203.0.113.9", [], undefined],
  ["172.32.0.1", [], undefined],
];

for (const [remoteAddress, trustProxy, named] of UNNAMED) {
  test(`a front at ${remoteAddress ?? "a unix socket"} with ${trustProxy.join(" ") || "nothing"} trusted: ${named ?? "nothing"} is reported, once`, () => {
    const reported: string[] = [];
    const addressOf = clientAddress(trustProxy, (peer) => reported.push(peer));
    const socket = { remoteAddress } as Socket;
    addressOf(socket, new RequestHeaders(["Host", "x"]));
    assert.deepEqual(reported, []);
    for (let i = 0; i < 3; i++) addressOf(socket, new RequestHeaders(["X-Forwarded-For", "9.9.9.9"]));
    assert.deepEqual(reported, named === undefined ? [] : [named]);
  });
}

test("a closed connection, which has no address any more, is not mistaken for a front at a unix socket", () => {
  const reported: string[] = [];
  const addressOf = clientAddress(["127.0.0.1/32"], (peer) => reported.push(peer));
  const socket = { remoteAddress: undefined, destroyed: true } as Socket;
  assert.equal(addressOf(socket, new RequestHeaders(["X-Forwarded-For", "9.9.9.9"])), undefined);
  assert.deepEqual(reported, []);
});

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
