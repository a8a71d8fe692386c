/** The list of ports is that of fetch itself: each is refused by it without a connection, and it has no further one. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { isUnasked } from "../../../src/config/compile/ports.ts";

const PORTS = Array.from({ length: 65_536 }, (_, port) => port);
const { badPortsSet } = createRequire(import.meta.url)("undici/lib/web/fetch/constants.js") as {
  badPortsSet: ReadonlySet<string>;
};

test("the ports are those that the package undici has", () => {
  assert.ok(badPortsSet.size > 50);
  assert.deepEqual(
    PORTS.filter(isUnasked),
    PORTS.filter((port) => badPortsSet.has(String(port))),
  );
});

test("this Node's fetch refuses each", async () => {
  for (const port of PORTS.filter(isUnasked)) {
    const failed = await fetch(`http://127.0.0.1:${port}/`).catch((error) => error);
    assert.match(String(failed.cause), /bad port/, String(port));
  }
});
