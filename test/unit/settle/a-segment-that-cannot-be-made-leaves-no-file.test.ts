/**
 * On a full disk the journal tries again and again to create a segment, each time under a new name. Partial files that stayed
 * would take up any room that becomes free.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";

const DISK = new URL("../../../src/settle/journal/disk.ts", import.meta.url).href;
const MAKE = `const { nodeDisk } = await import(${JSON.stringify(DISK)});
  const made = (name) => nodeDisk(process.env.DIR).create(name, 1 << 20).then((file) => file.close(), ({ code }) => console.log(code));
  await made("first.seg"); await made("second.seg");`;

test("a segment for which the disk has not enough room leaves no file", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-part-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  // This process may write files of at most 512 KB: writes beyond that are refused as on a full disk.
  const limited = `trap "" XFSZ; ulimit -f 512; exec "$0" --input-type=module --eval "$1"`;
  const said = execFileSync("bash", ["-c", limited, process.execPath, MAKE], {
    env: { ...process.env, DIR: dir },
    encoding: "utf8",
  });
  assert.equal(said, "EFBIG\nEFBIG\n");
  assert.deepEqual(readdirSync(dir), []);
});
