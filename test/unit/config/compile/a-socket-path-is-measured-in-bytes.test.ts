/** The system measures the path of a socket in bytes, so a path with letters of two bytes may be too long. */
import assert from "node:assert/strict";
import test from "node:test";
import { readAddress } from "../../../../src/config/compile/addresses.ts";

test("a socket's path may have 107 bytes, however many characters these are", () => {
  for (const path of [`/${"a".repeat(106)}`, `/${"ä".repeat(53)}`])
    assert.deepEqual(readAddress(`unix:${path}`), { value: { kind: "unix", path } });
  for (const path of [`/${"a".repeat(107)}`, `/${"ä".repeat(53)}a`]) assert.ok("wrong" in readAddress(`unix:${path}`));
});
