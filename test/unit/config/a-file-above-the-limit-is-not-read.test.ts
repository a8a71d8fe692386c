/**
 * A file that is larger than a configuration may be is refused by its size: the watch reads all files once a second,
 * and hundreds of megabytes would stop the event loop each time.
 */
import assert from "node:assert/strict";
import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { loadConfig } from "../../../src/config/config.ts";
import { better, good, watched } from "./watched.ts";

/** More than fits into a string, so an attempt to read it fails with another message. It takes no space on the disk. */
const HUGE_BYTES = 600 * 1024 * 1024;
/** The look that finds a change and the one that confirms it. */
const CHANGE_LOOKS = 2;

test("a configuration above the limit is refused by its size, once, and a smaller one is loaded", async (t) => {
  const { file, problems, settings, look } = await watched(t);
  truncateSync(file, HUGE_BYTES);
  await look(2 * CHANGE_LOOKS);
  assert.deepEqual(
    problems.flat().map(({ message }) => message),
    ["the file cannot be read (larger than 4194304 bytes); use --config to name another one"],
  );
  assert.deepEqual(loadConfig({ file, env: {} }), { problems: problems[0] });
  writeFileSync(file, better);
  await look(CHANGE_LOOKS);
  assert.deepEqual([settings.length, problems.length], [1, 1]);
});

test("a secret's file above the limit is refused by its size", async (t) => {
  const { folder, file, problems, look } = await watched(t);
  const secret = join(folder, "secret");
  writeFileSync(secret, "");
  truncateSync(secret, HUGE_BYTES);
  writeFileSync(file, `${good}admin_token: file:${secret}\n`);
  await look(CHANGE_LOOKS);
  assert.deepEqual(
    problems.flat().map(({ message }) => message),
    [`the file ${secret} cannot be read (larger than 4194304 bytes); a secret was expected`],
  );
});
