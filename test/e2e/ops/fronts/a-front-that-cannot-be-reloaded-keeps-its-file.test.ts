/** deploy/drain.sh: where nginx does not take the file, or not now, the file is as it was, so that any later restart is safe. */
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

/** Drains with a program in nginx's place that fails at one of its two commands. */
function drained(failing: "-t" | "-s"): { status: number | null; said: string; file: string; left: string[] } {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-drain-"));
  try {
    const file = join(dir, "tollgate.conf");
    const nginx = join(dir, "nginx.sh");
    writeFileSync(file, FILE);
    writeFileSync(nginx, `[ "$1" != "${failing}" ] || exit 1\n`);
    const env = { PATH: process.env.PATH ?? "", NGINX_CMD: `sh ${nginx}` };
    const { status, stderr } = spawnSync("sh", [DRAIN, "nginx", file, "127.0.0.1:8787", `${process.pid}`], { env });
    return { status, said: stderr.toString(), file: readFileSync(file, "utf8"), left: readdirSync(dir).sort() };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

for (const [failing, words] of [
  ["-t", /nginx refuses the file, which was put back; nothing was stopped/],
  ["-s", /nginx could not be reloaded, and the file was put back; nothing was stopped/],
] as const) {
  test(`nginx fails at ${failing}`, () => {
    const { status, said, file, left } = drained(failing);
    assert.match(said, words);
    assert.deepEqual([status, file, left], [1, FILE, ["nginx.sh", "tollgate.conf"]]);
  });
}
