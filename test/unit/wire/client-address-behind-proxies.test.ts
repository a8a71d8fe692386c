import assert from "node:assert/strict";
import test from "node:test";
import { normalIp } from "../../../src/wire/address.ts";
import { cidrMatcher, forwardedClient } from "../../../src/wire/header.ts";

test("addresses are matched with blocks, however they are spelled", () => {
  const trusts = cidrMatcher([
    "127.0.0.1/32",
    "10.0.0.0/8",
    "192.0.2.7",
    "fd00::/8",
    "2001:db8::1",
    "::ffff:172.16.0.0/108",
    "unix",
  ]);
  for (const ip of [
    "127.0.0.1",
    "::ffff:127.0.0.1",
    "::FFFF:7f00:1",
    "10.255.0.1",
    "192.0.2.7",
    "fd12::1",
    "FD00:0:0::1",
  ]) {
    assert.ok(trusts(ip), ip);
  }
  for (const ip of ["2001:DB8:0::1", "172.31.9.9", "::ffff:172.16.0.1", "fd00::1%eth0"]) assert.ok(trusts(ip), ip);
  for (const ip of [
    "127.0.0.2",
    "11.0.0.1",
    "192.0.2.8",
    "2001:db8::2",
    "::1",
    "172.32.0.1",
    "::7f00:1",
    "::10.0.0.1",
  ]) {
    assert.ok(!trusts(ip), ip);
  }
  for (const text of ["", "unix", "localhost", "127.1", "0x7f.0.0.1", "127.0.0.1:80", " 127.0.0.1"])
    assert.ok(!trusts(text), text);
  assert.ok(!cidrMatcher([])("127.0.0.1"));
  assert.ok(cidrMatcher(["0.0.0.0/0"])("::ffff:9.9.9.9"));
  assert.ok(!cidrMatcher(["0.0.0.0/0"])("2001:db8::1"));
});

test("an invalid block is refused by name", () => {
  for (const block of [
    "",
    "x",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/08",
    "10/8",
    "::/129",
    "::ffff:10.0.0.0/95",
    "fe80::1%eth0",
    "1.2.3.4/",
  ]) {
    assert.throws(() => cidrMatcher([block]), {
      name: "RangeError",
      message: new RegExp(`: ${block.replace(/[.%]/g, ".")}$`),
    });
  }
});

test("each address is normalised to one spelling", () => {
  assert.equal(normalIp("::ffff:1.2.3.4"), "1.2.3.4");
  assert.equal(normalIp("2001:DB8:0:0:0:0:0:1"), "2001:db8::1");
  assert.equal(normalIp("nonsense"), undefined);
});

test("the client's address is the first from the right that is not a trusted proxy", () => {
  const trusts = cidrMatcher(["10.0.0.0/8", "127.0.0.1"]);
  const table: [string, string | undefined][] = [
    ["203.0.113.9", "203.0.113.9"],
    ["1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"],
    ["1.1.1.1,203.0.113.9", "203.0.113.9"],
    ["127.0.0.1, 203.0.113.9 , ::ffff:10.0.0.1", "203.0.113.9"],
    ["203.0.113.9:4711, 10.0.0.2:80", "203.0.113.9"],
    ["[2001:DB8::9]:4711", "2001:db8::9"],
    ["[2001:db8::9]", "2001:db8::9"],
    ["2001:db8::9", "2001:db8::9"],
    ["10.0.0.1, 127.0.0.1", "127.0.0.1"],
    ["::ffff:127.0.0.1", "127.0.0.1"],
    ["unknown, 10.0.0.1, 127.0.0.1", undefined],
    ["203.0.113.9, unknown", undefined],
    ["203.0.113.9, unknown, 10.0.0.1", undefined],
    ["203.0.113.9, ", undefined],
    ["_hidden", undefined],
    ["", undefined],
  ];
  for (const [header, expected] of table) assert.equal(forwardedClient(header, trusts), expected, header);
});
