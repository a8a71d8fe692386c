/** docs/failure-model.md row F4: a second process on the same folder is refused; the lock of a dead process is released. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test, { type TestContext } from "node:test";
import { openJournal } from "../../../src/settle/journal/open.ts";
import { type ChargingParts, openCharging } from "../../../src/settle/recovery/charging.ts";
import { systemClock } from "../../../src/values/time.ts";

const OPEN = new URL("../../../src/settle/journal/open.ts", import.meta.url).href;
const TIME = new URL("../../../src/values/time.ts", import.meta.url).href;
const REFUSED =
  /^FolderTakenError: another process( \(\d+\))? has the folder .* with the journal; give each process its own journal\.dir$/;

/** Child processes of the current test. One that stays alive would create files in the folder while it is removed. */
const children = new Set<ChildProcess>();

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-lock-"));
  t.after(async () => {
    await Promise.all([...children].map(end));
    children.clear();
    rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGCONT");
  child.kill("SIGKILL");
  await exited;
}

const open = (dir: string) =>
  openJournal({ dir, fsync: "group", bytesMax: 1_048_576 }, { clock: systemClock, alarm: assert.fail });

/**
 * A process that opens the journal and keeps it open, or says why it could not. @param container whether it has its own process
 * ids, as in a container.
 */
async function other(dir: string, container = false): Promise<{ child: ChildProcess; said: string }> {
  const program = `
    import { openJournal } from ${JSON.stringify(OPEN)};
    import { systemClock } from ${JSON.stringify(TIME)};
    const settings = { dir: process.argv[1], fsync: "group", bytesMax: 1_048_576 };
    try { await openJournal(settings, { clock: systemClock, alarm() {} }); console.log("locked"); }
    catch (error) { console.log(error.name + ": " + error.message); }
    setInterval(() => {}, 1_000);`;
  const node = [process.execPath, "--input-type=module", "-e", program, dir];
  const [command, ...args] = container
    ? ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", ...node]
    : node;
  const child = spawn(command as string, args, { stdio: ["ignore", "pipe", 2] });
  children.add(child);
  const [said] = (await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), "line")) as [string];
  return { child, said };
}

test("a second process is refused until the first releases the folder", async (t) => {
  const dir = folder(t);
  const { journal } = await open(dir);
  const { said } = await other(dir);
  assert.match(said, REFUSED);
  assert.ok(said.includes(`(${process.pid})`), "the message names the process");
  assert.equal(statSync(join(dir, "journal.lock")).mode & 0o777, 0o600);
  await journal.close();
  assert.equal((await other(dir)).said, "locked");
});

test("one process cannot open a folder twice", async (t) => {
  const dir = folder(t);
  const { journal } = await open(dir);
  await assert.rejects(open(join(dir, ".")), { name: "FolderTakenError" });
  await journal.close();
  await (await open(dir)).journal.close();
});

for (const name of ["dead-letters.jsonl", "store-epoch.json"]) {
  test(`a process that cannot read ${name} releases the folder`, async (t) => {
    const dir = folder(t);
    mkdirSync(join(dir, name));
    const settings = { dir, fsync: "group", bytesMax: 1_048_576 };
    const parts = { settings, clock: systemClock, log: { error: assert.fail }, store: { store: {} } };
    await assert.rejects(openCharging(parts as unknown as ChargingParts), { code: "EISDIR" });
    await (await open(dir)).journal.close();
  });
}

test("a stopped process keeps the folder, and a killed one does not", async (t) => {
  const dir = folder(t);
  const { child, said } = await other(dir);
  assert.equal(said, "locked");
  child.kill("SIGSTOP");
  await assert.rejects(open(dir), { name: "FolderTakenError" });
  child.kill("SIGKILL");
  await once(child, "exit");
  await (await open(dir)).journal.close();
});

test("of two containers on one volume, the second is refused while the first is alive", async (t) => {
  const dir = folder(t);
  const first = await other(dir, true);
  assert.equal(first.said, "locked");
  assert.match((await other(dir, true)).said, REFUSED);
  assert.match((await other(dir)).said, REFUSED);
  first.child.kill("SIGKILL");
  await once(first.child, "exit");
  // Processes in the container end a moment after it.
  let next = await other(dir, true);
  while (next.said !== "locked") next = await other(dir, true);
});
