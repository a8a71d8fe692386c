/** A watch on files in a folder of their own; the test moves the time from look to look. */
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type ConfigCopy, demoConfig, loadConfig, type Problem, watchConfig } from "../../../src/config/config.ts";
import { THREAD_CHARS_MIN } from "../../../src/config/watch.ts";
import type { Settings } from "../../../src/values/settings.ts";
import type { Clock } from "../../../src/values/time.ts";

export const good = demoConfig({ upstreamUrl: "http://127.0.0.1:9000", dataDir: "./data" });
export const better = `${good}heartbeat: 7s\n`;
export const bad = `${good}hartbeat: 7s\n`;

/** The text with a comment that makes it large enough for a thread. */
export const large = (text: string): string => `${text}# ${"x".repeat(THREAD_CHARS_MIN)}\n`;

const ALIVE_MS = 1_000;

/** A clock with one timer, which runs when the test fires it; `armed` is emitted whenever it is set. */
class HeldClock extends EventEmitter implements Clock {
  #task: (() => void) | undefined;
  #ms = 0;
  #nowMs = 0;
  monotonicMs = (): number => this.#nowMs;
  wallMs = (): number => 0;
  after(ms: number, task: () => void): () => void {
    this.#task = task;
    this.#ms = ms;
    this.emit("armed");
    return () => {
      if (this.#task === task) this.#task = undefined;
    };
  }
  fire(): void {
    const task = this.#task;
    this.#task = undefined;
    this.#nowMs += this.#ms;
    task?.();
  }
}

/**
 * @param options.text the configuration.
 * @param options.place creates the file in the folder and returns its path; by default it is the folder's
 * `tollgate.yaml`.
 */
export async function watched(
  t: TestContext,
  {
    text = good,
    place,
    env = {},
    onSettings = () => {},
  }: {
    text?: string;
    place?: (folder: string, text: string) => string;
    /** The environment of reloads. */
    env?: Record<string, string | undefined>;
    /** Called after the settings are recorded. */
    onSettings?: () => void;
  } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-config-"));
  const file = place?.(folder, text) ?? join(folder, "tollgate.yaml");
  if (!place) writeFileSync(file, text);
  const loaded = loadConfig({ file, env: {} });
  if (!("copy" in loaded)) throw new Error(JSON.stringify(loaded.problems));
  const clock = new HeldClock();
  const settings: Settings[] = [];
  const copies: ConfigCopy[] = [];
  const problems: (readonly Problem[])[] = [];
  const watch = watchConfig({
    file,
    copy: loaded.copy,
    env,
    clock,
    onSettings(next, copy) {
      settings.push(next);
      copies.push(copy);
      onSettings();
    },
    onProblems: (found) => problems.push(found),
  });
  t.after(() => {
    watch.close();
    rmSync(folder, { recursive: true });
  });
  return {
    folder,
    file,
    clock,
    settings,
    copies,
    problems,
    watch,
    /** Lets this many looks happen, one after the other. */
    async look(times = 1): Promise<void> {
      for (let i = 0; i < times; i++) {
        const armed = once(clock, "armed");
        clock.fire();
        await armed;
      }
    },
  };
}

/** Waits although nothing else keeps the process alive: a thread that loads a configuration does not. */
export async function awaited<T>(promise: Promise<T>): Promise<T> {
  const alive = setInterval(() => {}, ALIVE_MS);
  return promise.finally(() => clearInterval(alive));
}
