/** The list of blocked ports equals that of fetch: fetch refuses each of them without a connection, and no other. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { isUnasked } from "../../../src/config/compile/ports.ts";

const PORTS = Array.from({ length: 65_536 }, (_, port) => port);
const { badPortsSet } = createRequire(import.meta.url)("undici/lib/web/fetch/constants.js") as {
  badPortsSet: ReadonlySet<string>;
};

test("the ports are those of the undici package", () => {
  assert.ok(badPortsSet.size > 50);
  assert.deepEqual(
    PORTS.filter(isUnasked),
    PORTS.filter((port) => badPortsSet.has(String(port))),
  );
});

test("the fetch of this Node refuses each of them", async () => {
  for (const port of PORTS.filter(isUnasked)) {
    const failed = await fetch(`http://127.0.0.1:${port}/`).catch((error) => error);
    assert.match(String(failed.cause), /bad port/, String(port));
  }
});
