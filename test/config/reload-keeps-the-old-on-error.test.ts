/** Reliability row 84: a bad file leaves the running configuration as it was, and is told. */
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { demoConfig, diffSettings, loadConfig, type Problem, watchConfig } from "../../src/config.ts";
import type { Settings } from "../../src/values/settings.ts";
import type { Clock } from "../../src/values/time.ts";

const good = demoConfig({ upstreamUrl: "http://127.0.0.1:9000", dataDir: "./data" });
const better = `${good}heartbeat: 7s\n`;
const bad = `${good}hartbeat: 7s\n`;

/** A clock whose timers run when told; `armed` is emitted whenever one is set. */
class HeldClock extends EventEmitter implements Clock {
  #task: (() => void) | undefined;
  monotonicMs = (): number => 0;
  wallMs = (): number => 0;
  after(_ms: number, task: () => void): () => void {
    this.#task = task;
    this.emit("armed");
    return () => {
      if (this.#task === task) this.#task = undefined;
    };
  }
  fire(): void {
    const task = this.#task;
    this.#task = undefined;
    task?.();
  }
}

function watched(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-config-"));
  const file = join(folder, "tollgate.yaml");
  writeFileSync(file, good);
  const clock = new HeldClock();
  const settings: Settings[] = [];
  const problems: (readonly Problem[])[] = [];
  const watch = watchConfig({
    file,
    text: good,
    env: {},
    clock,
    onSettings: (next) => settings.push(next),
    onProblems: (found) => problems.push(found),
  });
  t.after(() => {
    watch.close();
    rmSync(folder, { recursive: true });
  });
  /** Does something to the folder, waits until the watch has noticed, and lets the settling time pass. */
  const change = async (act: () => void): Promise<void> => {
    const armed = once(clock, "armed");
    act();
    await armed;
    clock.fire();
  };
  return { file, folder, clock, settings, problems, watch, change };
}

test("a changed file becomes settings, a bad one problems and nothing else", async (t) => {
  const { file, settings, problems, change } = watched(t);
  await change(() => writeFileSync(`${file}.new`, better));
  assert.equal(settings.length + problems.length, 0, "a neighbour is no change");
  await change(() => renameSync(`${file}.new`, file));
  // The write itself may be reported once more after the rename; the hash makes that harmless.
  assert.deepEqual(
    settings.map((next) => next.heartbeatMs),
    [7_000],
  );
  await change(() => {
    writeFileSync(`${file}.new`, bad);
    renameSync(`${file}.new`, file);
  });
  assert.equal(settings.length, 1);
  assert.equal(problems[0]?.[0]?.key, "hartbeat");
});

test("touching the file changes nothing", async (t) => {
  const { file, settings, problems, change } = watched(t);
  await change(() => utimesSync(file, 1, 1));
  assert.equal(settings.length + problems.length, 0);
});

test("reload reads at once, even an unchanged file; a missing one is a problem", (t) => {
  const { file, settings, problems, watch } = watched(t);
  watch.reload();
  assert.equal(settings.length, 1);
  rmSync(file);
  watch.reload();
  assert.match(problems[0]?.[0]?.message ?? "", /ENOENT/);
  watch.close();
  watch.reload();
  assert.deepEqual([settings.length, problems.length], [1, 1], "nothing after close");
});

test("what waits for a restart is named", () => {
  const settingsOf = (text: string): Settings => {
    const loaded = loadConfig({ text, env: {} });
    assert.ok("settings" in loaded);
    return loaded.settings;
  };
  const old = settingsOf(good);
  assert.deepEqual(diffSettings(old, settingsOf(better)), { restart: [] });
  const moved = settingsOf(good.replace("8787", "8789").replace("./data", "./other"));
  assert.deepEqual(diffSettings(old, moved), { restart: ["listen", "store", "journal"] });
  const redis = (password: string): Settings =>
    settingsOf(
      good.replace(/store: .*/, `store: redis://:${password}@h/0\nsealing_keys: [0123456789abcdef0123456789abcdef]`),
    );
  assert.deepEqual(diffSettings(redis("a"), redis("b")), { restart: ["store"] }, "a password alone");
});
