/**
 * docs/decisions/stateful-upstreams-get-wrapped-ids.md: any id that a server gives is restored unchanged, for its own
 * account only.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { isWrapped, openStored, WrappedIds } from "../../../../src/convert/responses/stored/stored.ts";
import { createSealing } from "../../../../src/request/sealing.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { contextOf, OWN } from "./rig.ts";

const ROUTE = { upstream: "east", model: "big-1" };
const wrap = (id: string, route = ROUTE): string => new WrappedIds(route, OWN).of(id) as string;

const ids = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,255}$/),
  fc
    .tuple(fc.constantFrom("resp_", "msg_", "rs_", "x"), fc.stringMatching(/^[0-9a-f]{16,128}$/))
    .map((two) => two.join("")),
);

test("any id is wrapped the same each time, unlike any other id, and restored", () => {
  const names = fc.stringMatching(/^[\p{L}\p{N} ._/:-]{1,64}$/u);
  fc.assert(
    fc.property(ids, names, names, ids, (id, upstream, model, other) => {
      const wrapped = wrap(id, { upstream, model });
      assert.ok(isWrapped(wrapped), wrapped);
      assert.deepEqual(openStored(wrapped, OWN), { upstream, model, id });
      assert.equal(wrap(id, { upstream, model }), wrapped);
      assert.equal(wrap(other, { upstream, model }) === wrapped, other === id);
      assert.equal(openStored(wrapped, contextOf("another")), undefined);
    }),
  );
});

test("a wrapped id of the official service is short", () => {
  const id = `resp_${"0123456789abcdef".repeat(3)}01`;
  assert.ok(wrap(id).length <= 115, `${wrap(id).length}`);
});

test("an id with any changed character or another prefix does not open", () => {
  for (const digits of [16, 17, 18])
    nothingElseOpens(wrap(`msg_${"0123456789abcdef".repeat(3)}`.slice(0, 4 + 2 * digits)));
});

function nothingElseOpens(wrapped: string): void {
  for (let at = 0; at < wrapped.length; at++) {
    for (const letter of ["A", "b", "-", ".", "é", ""]) {
      const changed = wrapped.slice(0, at) + letter + wrapped.slice(at + 1);
      if (changed === wrapped) continue;
      assert.equal(openStored(changed, OWN), undefined, changed);
    }
  }
  // The last bits of a base64url text may be unused, and so may an additional digit.
  for (const digit of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
    for (const changed of [wrapped + digit, wrapped.slice(0, -1) + digit]) {
      assert.equal(openStored(changed, OWN) !== undefined, changed === wrapped, changed);
    }
  }
  assert.equal(openStored(wrapped.replace(/^msg/, "resp"), OWN), undefined);
  for (const foreign of [
    null,
    7,
    {},
    "",
    "resp_gw1.u.",
    `resp_gw1.u.${"A".repeat(5_000)}`,
    `${wrapped} `,
    `x\n${wrapped}`,
  ]) {
    assert.equal(openStored(foreign, OWN), undefined);
  }
  // Sealed by this gateway for the account, but for another purpose.
  const reasoning = OWN.seal(Buffer.from("\u0001east\0big-1\0resp_1"), "items");
  assert.equal(openStored(`resp_gw1.u.${reasoning.slice(4)}`, OWN), undefined);
}

test("an id by which the client asked is returned, except for the same id of another server", () => {
  const ofEast = wrap("resp_1");
  const asked = { names: new Map([[ofEast, { ...ROUTE, id: "resp_1" }]]) };
  assert.equal(new WrappedIds(ROUTE, OWN, asked).of("resp_1"), ofEast);
  const ofWest = new WrappedIds({ ...ROUTE, upstream: "west" }, OWN, asked).of("resp_1");
  assert.equal(openStored(ofWest, OWN)?.upstream, "west");
});

test("a value that is not an id is not wrapped: too long, empty, with other characters, not a string", () => {
  const made = new WrappedIds(ROUTE, OWN);
  for (const id of ["", "x".repeat(257), "a b", "a/../b", "ä", "a\0b", 7, null, undefined, {}]) {
    assert.equal(made.of(id), undefined);
  }
});

test("different contents never share a nonce, and contexts are separate", () => {
  const sealing = createSealing([new Secret("a-key-of-the-gateway-for-its-tests")]);
  const nonceOf = (envelope: string) => Buffer.from(envelope.slice(4), "base64url").subarray(0, 12).toString("hex");
  const seen = new Set<string>();
  for (const [content, context] of [
    ["ab", "c"],
    ["b", "ca"],
    ["a", "c"],
    ["ab", "d"],
    ["", "c:ab"],
  ] as const) {
    const envelope = sealing.sealAlike(Buffer.from(content), context);
    assert.equal(sealing.sealAlike(Buffer.from(content), context), envelope);
    assert.equal(Buffer.from(sealing.open(envelope, context) ?? "none").toString(), content);
    seen.add(nonceOf(envelope));
  }
  assert.equal(seen.size, 5);
  assert.notEqual(sealing.seal(Buffer.from("ab"), "c"), sealing.seal(Buffer.from("ab"), "c"));
});
