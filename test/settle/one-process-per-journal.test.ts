/**
 * docs/failure-model.md row F4: a second process on the same folder refuses with a clear message; a dead one's lock is
 * taken over.
 */
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

/**
 * A process that takes the folder and stays, or says why it could not.
 * @param container whether it has pids of its own, as in a container.
 */
async function other(t: TestContext, dir: string, container = false): Promise<{ child: ChildProcess; said: string }> {
  const program = `
    import { takeFolder } from ${JSON.stringify(LOCK)};
    try { await takeFolder(process.argv[1], () => {}); console.log("locked"); setInterval(() => {}, 1_000); }
    catch (error) { console.log(error.name + ": " + error.message); }`;
  const node = [process.execPath, "--input-type=module", "-e", program, dir];
  const [command, ...args] = container
    ? ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", ...node]
    : node;
  const child = spawn(command as string, args, { stdio: ["ignore", "pipe", 2] });
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

test("two containers on one volume: the second is refused while the first lives, and takes over when it is silent", async (t) => {
  const dir = folder(t);
  const first = await other(t, dir, true);
  assert.equal(first.said, "locked");
  const second = await other(t, dir, true);
  assert.match(second.said, /^JournalLockedError: a process of another container or machine has the journal in /);
  const here = await other(t, dir);
  assert.match(here.said, /another container or machine/);
  first.child.kill("SIGKILL");
  await once(first.child, "exit");
  const startedMs = performance.now();
  assert.equal((await other(t, dir, true)).said, "locked");
  assert.ok(performance.now() - startedMs >= 15_000, "it was watched for as long as it may be silent");
  assert.equal(readdirSync(dir).length, 1);
});
