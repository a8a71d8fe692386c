/** Row F4: a second process on the same folder refuses with a clear message; a dead one's lock is taken over. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test, { type TestContext } from "node:test";
import { lockFolder } from "../../src/settle/journal/lock.ts";

const LOCK = new URL("../../src/settle/journal/lock.ts", import.meta.url).href;

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-lock-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A process that takes the folder and stays, or says why it could not. */
async function other(t: TestContext, dir: string): Promise<{ child: ChildProcess; said: string }> {
  const program = `
    import { lockFolder } from ${JSON.stringify(LOCK)};
    try { lockFolder(process.argv[1]); console.log("locked"); setInterval(() => {}, 1_000); }
    catch (error) { console.log(error.name + ": " + error.message); }`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, dir], { stdio: ["ignore", "pipe", 2] });
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  const [said] = (await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), "line")) as [string];
  return { child, said };
}

test("a second process refuses and names the first", async (t) => {
  const dir = folder(t);
  const unlock = lockFolder(dir);
  const second = await other(t, dir);
  assert.match(second.said, new RegExp(`^JournalLockedError: process ${process.pid} has the journal in `));
  unlock();
  assert.equal((await other(t, dir)).said, "locked");
});

test("the lock of a process that was killed is taken over", async (t) => {
  const dir = folder(t);
  const { child, said } = await other(t, dir);
  assert.equal(said, "locked");
  assert.throws(() => lockFolder(dir), { name: "JournalLockedError" });
  child.kill("SIGKILL");
  await once(child, "exit");
  const unlock = lockFolder(dir);
  assert.equal(readdirSync(dir).length, 1);
  unlock();
  assert.deepEqual(readdirSync(dir), []);
});

test("a pid that belongs to another process now, and a lock from before the last boot, hold nothing", (t) => {
  const dir = folder(t);
  const [own] = namesWhileLocked(dir);
  const [, , started, boot] = (own as string).split(".") as [string, string, string, string];
  writeFileSync(join(dir, `lock.${process.ppid}.1.${boot}`), "");
  writeFileSync(join(dir, `lock.${process.pid}.${started}.0123abcd`), "");
  lockFolder(dir)();
  assert.deepEqual(readdirSync(dir), []);
});

function namesWhileLocked(dir: string): string[] {
  const unlock = lockFolder(dir);
  const names = readdirSync(dir);
  unlock();
  return names;
}

test("one process cannot have a folder twice", (t) => {
  const dir = folder(t);
  const unlock = lockFolder(dir);
  assert.throws(() => lockFolder(join(dir, ".")), /has the journal in .* already/);
  unlock();
  lockFolder(dir)();
});
