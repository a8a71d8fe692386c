/**
 * deploy/drain.sh: if nginx refuses the file or fails to reload, or there is no process to drain, the file is restored,
 * so that any later restart is safe.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import test from "node:test";
import { fileURLToPath } from "node:url";

const DRAIN = fileURLToPath(new URL("../../../../deploy/drain.sh", import.meta.url));
const FILE = "upstream tollgate {\n  server 127.0.0.1:8787 max_fails=1;\n}\n";

interface Drained {
  readonly status: number | null;
  readonly said: string;
  readonly file: string;
  readonly left: string[];
}

/** Runs the drain with a fake nginx that fails at one of its two commands, or at none. */
function drained(failing: "-t" | "-s" | "none", pid = `${process.pid}`, at?: string): Drained {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-drain-"));
  try {
    const file = join(dir, "tollgate.conf");
    const nginx = join(dir, "nginx.sh");
    writeFileSync(file, FILE);
    writeFileSync(nginx, `[ "$1" != "${failing}" ] || exit 1\n`);
    const env = { PATH: process.env.PATH ?? "", NGINX_CMD: `sh ${nginx}` };
    // A separate process group: a signal to the script's whole group must not end the tests.
    const options = { env, detached: true };
    const { status, stderr } = spawnSync("sh", [DRAIN, "nginx", at ?? file, "127.0.0.1:8787", pid], options);
    return { status, said: stderr.toString(), file: readFileSync(file, "utf8"), left: readdirSync(dir).sort() };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

for (const [failing, words] of [
  ["-t", /nginx refuses the file, which was put back; nothing was stopped/],
  ["-s", /nginx could not be reloaded, and the file was put back; nothing was stopped/],
] as const) {
  test(`if nginx fails at ${failing}, its file is restored`, () => {
    const { status, said, file, left } = drained(failing);
    assert.match(said, words);
    assert.deepEqual([status, file, left], [1, FILE, ["nginx.sh", "tollgate.conf"]]);
  });
}

for (const pid of ["0", "00"]) {
  test(`the PID ${pid}, which systemctl reports for a stopped unit, counts as no process`, () => {
    const { status, said, file, left } = drained("none", pid);
    assert.match(said, /^drain: the process does not run .*; nothing was changed$/m);
    assert.deepEqual([status, file, left], [1, FILE, ["nginx.sh", "tollgate.conf"]]);
  });
}

test("a missing file is named", () => {
  const { status, said, file } = drained("none", undefined, "/nope/tollgate.conf");
  assert.equal(
    said,
    "drain: there is no file /nope/tollgate.conf; name the one that has the upstream block. Nothing was changed\n",
  );
  assert.deepEqual([status, file], [1, FILE]);
});
