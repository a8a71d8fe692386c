// Two spellings of an address are the same bits, and a block is a prefix of its addresses' bits; node:net is the reference.
import assert from "node:assert/strict";
import { BlockList, isIP } from "node:net";
import test from "node:test";
import fc from "fast-check";
import { addressBits, blockBits } from "../../../src/store/limits/address-bits.ts";

const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4().map((text) => `::ffff:${text}`),
);

test("an address is within a block exactly when it is for node:net", () => {
  fc.assert(
    fc.property(address, address, fc.integer({ min: 0, max: 128 }), (one, other, length) => {
      const isV4 = isIP(other) === 4;
      const prefix = isV4 ? Math.min(length, 32) : length;
      const list = new BlockList();
      list.addSubnet(other, prefix, isV4 ? "ipv4" : "ipv6");
      const offset = isV4 ? 96 : 0;
      const block = addressBits(other).slice(0, offset + prefix);
      // BlockList treats a mapped address as IPv4, and never as part of an IPv6 block.
      const mapped = addressBits(one).startsWith("0".repeat(80) + "1".repeat(16));
      fc.pre(isV4 || !mapped);
      fc.pre(!(isV4 && isIP(one) === 6 && !mapped && prefix === 0));
      assert.equal(addressBits(one).startsWith(block), list.check(one, isIP(one) === 4 ? "ipv4" : "ipv6"));
    }),
    { numRuns: 500 },
  );
});

test("spellings of one address have the same bits, and a text that is no address has none", () => {
  assert.equal(addressBits("10.0.0.1"), addressBits("::ffff:10.0.0.1"));
  assert.equal(addressBits("::ffff:a00:1"), addressBits("10.0.0.1"));
  assert.equal(addressBits("FE80::1%eth0"), addressBits("fe80:0:0:0::1"));
  assert.equal(addressBits("::").length, 128);
  for (const none of ["", "unix", "10.0.0", "10.0.0.1.2", "::1::", "x"]) assert.equal(addressBits(none), "", none);
});

test("a block with bits set after its prefix, or of an invalid form, is refused", () => {
  assert.equal(blockBits("10.0.0.0/8")?.length, 104);
  assert.equal(blockBits("10.0.0.7")?.length, 128);
  assert.equal(blockBits("0.0.0.0/0")?.length, 96);
  assert.equal(blockBits("::/0"), "");
  for (const none of [
    "10.0.0.1/8",
    "10.0.0.0/33",
    "fd00::1/8",
    "::/129",
    "10.0.0.0/",
    "10.0.0.0/08",
    "/8",
    "a/8",
    "fe80::1%eth0",
    "",
  ]) {
    assert.equal(blockBits(none), undefined, none);
  }
});
