/** docs/console.md, limits: failures are counted by /64, and `::` may stand for zeros within the network's part. */
import assert from "node:assert/strict";
import test from "node:test";
import { addressBucket, networkOf } from "../../../src/wire/address.ts";

test("a network of IPv6 is one bucket, however its zeros are written", () => {
  const bucketsOf = (...addresses: string[]) => [...new Set(addresses.map(addressBucket))];
  assert.deepEqual(bucketsOf("2001:db8:1:0:1::", "2001:db8:1::1", "2001:db8:1::2:3:4:5"), ["2001:db8:1:0::/64"]);
  assert.deepEqual(bucketsOf("2001:db8:0:0:1::", "2001:db8::1"), ["2001:db8:0:0::/64"]);
  assert.deepEqual(bucketsOf("2001:0:0:1:1::", "2001:0:0:1::1", "2001::1:1:2:3:4"), ["2001:0:0:1::/64"]);
  assert.deepEqual(bucketsOf("::1", "::2:0:0:1"), ["0:0:0:0::/64"]);
  assert.deepEqual(bucketsOf("2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6", "fe80::1%eth0"), [
    "2001:db8:1:2::/64",
    "fe80:0:0:0::/64",
  ]);
  assert.deepEqual(bucketsOf("::ffff:192.0.2.1", "192.0.2.1"), ["192.0.2.1"]);
  assert.equal(networkOf(addressBucket("2001:db8::1")), networkOf(addressBucket("2001:db8:0:7::1")));
});
