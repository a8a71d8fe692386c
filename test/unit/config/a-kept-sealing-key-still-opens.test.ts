/** docs/operation.md, "Sealing keys": what was sealed before the first key was configured can still be opened. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { keptSecret, sealingKeysOf } from "../../../src/config/kept-secret.ts";
import { Secret } from "../../../src/values/secret.ts";

test("the first configured key precedes the generated one, and none is generated if keys are configured", (t) => {
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

test("a generated secret is readable only by its user, whoever may read the folder", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-sealing-"));
  t.after(() => rmSync(dir, { recursive: true }));
  chmodSync(dir, 0o755);
  keptSecret(dir, "admin-token");
  assert.equal(statSync(join(dir, "admin-token")).mode & 0o777, 0o600);
});
