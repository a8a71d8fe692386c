/**
 * Editors and `echo` end a file with a line end, which is no part of the secret in it. Everything else is: a secret may
 * begin or end with a blank or have several lines. A file may have as many bytes as the longest secret.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { formatProblem, LIMITS, loadConfig } from "../../../src/config/config.ts";
import { LEAST } from "./compile/least.ts";

/** The sealing key that a file with this text holds, or the problem with it. */
function keyIn(file: string): string | undefined {
  const text = `sealing_keys: ["file:/run/sealing-key"]\n${LEAST}`;
  const loaded = loadConfig({ text, env: {}, readFile: () => file });
  return "problems" in loaded
    ? loaded.problems.map(formatProblem).join()
    : loaded.settings.sealingKeys.map((key) => key.reveal()).join();
}

const SECRET = "0123456789abcdef0123456789abcdef";

test("only the last line end of a secret's file is left out", () => {
  for (const secret of [SECRET, ` ${SECRET} `, `${SECRET}\n${SECRET}`, `${SECRET}\n`]) {
    assert.equal(keyIn(`${secret}\n`), secret, JSON.stringify(secret));
    assert.equal(keyIn(`${secret}\r\n`), secret, JSON.stringify(secret));
  }
  assert.equal(keyIn(SECRET), SECRET);
});

test("a file of the largest size is read, and a larger one is refused", () => {
  const most = "k".repeat(LIMITS.secretBytesMax);
  assert.equal(keyIn(most), most);
  assert.match(keyIn(`${most}k`) ?? "", /larger than \d+ bytes/);
});
