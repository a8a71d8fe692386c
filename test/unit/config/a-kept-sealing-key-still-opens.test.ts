/** docs/operation.md, "Sealing keys": what was sealed before the first configured key still opens. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { sealingKeysOf } from "../../../src/config/kept-secret.ts";
import { Secret } from "../../../src/values/secret.ts";

test("the first configured key goes before the kept one, and none is made beside configured keys", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-sealing-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const configured = new Secret("a configured key of 32 characters");
  assert.deepEqual(sealingKeysOf([configured], dir), [configured]);
  assert.deepEqual(readdirSync(dir), []);
  const [made] = sealingKeysOf([], dir);
  assert.ok(made);
  const both = sealingKeysOf([configured], dir);
  assert.deepEqual(
    both.map((key) => key.reveal()),
    [configured.reveal(), made.reveal()],
  );
});
