/**
 * Loads a large configuration in a thread of its own. For a thousand models the parser, the schema and the checks need
 * most of a second of CPU time, in which all streams of the process would stand still. What remains for the event loop
 * is to read the finished settings, some 10 ms.
 */
import { Worker, type WorkerOptions } from "node:worker_threads";
import { IS_BUNDLE } from "../../values/program/program.ts";
import type { AttemptInput, LoadAttempt } from "./attempt.ts";
import { attemptOf, type ThreadReply } from "./reply.ts";

/**
 * Size of the thread's young generation. By default V8 lets it grow to 48 MB, and a process that has loaded a thousand
 * models keeps 80 MB more until its memory is given back in a quiet minute (src/telemetry/heap.ts). The CPU time is the
 * same.
 */
const YOUNG_MB_MAX = 12;

export interface ThreadedAttempt {
  /**
   * Undefined if the thread has failed: the system had none left, it ran out of memory, or its program was replaced on
   * disk by another build. Never rejects.
   */
  readonly result: Promise<LoadAttempt | undefined>;
  /** Ends the thread; `result` is then undefined. */
  stop(): void;
}

/** @param text the configuration's text, which is also in `input.seen`. */
export function attemptInThread(input: AttemptInput, text: string): ThreadedAttempt {
  try {
    const thread = startThread({
      name: "configuration",
      // The environment that references are read from is data; the thread itself has none.
      workerData: { ...input, env: { ...input.env } },
      env: {},
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX },
      // What another build on disk may print is no part of the log.
      stdout: true,
      stderr: true,
    });
    const { promise, resolve, reject } = Promise.withResolvers<ThreadReply>();
    thread.once("message", resolve).once("error", reject).once("exit", reject);
    // After the listeners, because each of them would keep the process waiting for the thread.
    thread.unref();
    const result = promise.then((reply) => attemptOf(reply, text)).catch(() => undefined);
    return { result, stop: () => void thread.terminate() };
  } catch {
    return { result: Promise.resolve(undefined), stop() {} };
  }
}

/** Starts program.ts. A bundle contains it, and recognizes the thread (build/program.ts). */
function startThread(options: WorkerOptions): Worker {
  if (!IS_BUNDLE) return new Worker(new URL("./program.ts", import.meta.url), options);
  const sea = process.getBuiltinModule("node:sea");
  if (!sea.isSea()) return new Worker(process.argv[1] as string, options);
  // The executable is not a script: its launcher reads the scripts at the end of the file again.
  return new Worker(sea.getAsset("launcher.cjs", "utf8"), { ...options, eval: true });
}
