/**
 * Loads a large configuration in a thread of its own. For a thousand models the parser, the schema and the checks need
 * most of a second of CPU time, in which all streams of the process would stand still. What remains for the event loop
 * is to read the finished settings, some 10 ms.
 */
import { getHeapStatistics } from "node:v8";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { codeOfFailure } from "../../values/program/error-text.ts";
import { IS_BUNDLE } from "../../values/program/program.ts";
import { digest } from "../found.ts";
import { type AttemptInput, type LoadAttempt, unloaded } from "./attempt.ts";
import { attemptOf, type ThreadReply } from "./reply.ts";

/**
 * Size of the thread's young generation. By default V8 lets it grow to 48 MB, and a process that has loaded a thousand
 * models keeps 80 MB more until its memory is given back in a quiet minute (src/telemetry/heap.ts). The CPU time is the
 * same.
 */
const YOUNG_MB_MAX = 12;

/**
 * The most that the thread's heap may hold, less if the process itself may hold less. The largest valid file, with as
 * many values as LIMITS allows, needs 400 MB. Of a broken one of the same size, such as 4 MB of brackets, the parser
 * makes several gigabytes.
 */
const HEAP_MB_MAX = 768;
const BYTES_PER_MB = 1_048_576;

export interface ThreadedAttempt {
  /**
   * Undefined if the thread has failed: the system had none left, or its program was replaced on disk by another build.
   * Never rejects. If the thread ran out of memory, that is a problem of the file: the process has no more memory for
   * it, and would end.
   */
  readonly result: Promise<LoadAttempt | undefined>;
  /** Ends the thread; `result` is then undefined. */
  stop(): void;
}

/**
 * @param text the configuration's text, which is also in `input.seen`.
 * @param heapMbMax what the thread's heap may hold, in MB.
 */
export function attemptInThread(input: AttemptInput, text: string, heapMbMax = defaultHeapMb()): ThreadedAttempt {
  try {
    const thread = startThread({
      name: "configuration",
      // The environment that references are read from is data; the thread itself has none.
      workerData: { ...input, env: { ...input.env } },
      env: {},
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX, maxOldGenerationSizeMb: heapMbMax },
      // What another build on disk may print is no part of the log.
      stdout: true,
      stderr: true,
    });
    const { promise, resolve, reject } = Promise.withResolvers<ThreadReply>();
    thread.once("message", resolve).once("error", reject).once("exit", reject);
    // After the listeners, because each of them would keep the process waiting for the thread.
    thread.unref();
    const result = promise
      .then((reply) => attemptOf(reply, text))
      .catch((error) => (codeOfFailure(error) === OUT_OF_MEMORY ? tooLargeToLoad(input, heapMbMax) : undefined));
    return { result, stop: () => void thread.terminate() };
  } catch {
    return { result: Promise.resolve(undefined), stop() {} };
  }
}

const OUT_OF_MEMORY = "ERR_WORKER_OUT_OF_MEMORY";

function defaultHeapMb(): number {
  return Math.min(HEAP_MB_MAX, Math.floor(getHeapStatistics().heap_size_limit / BYTES_PER_MB));
}

function tooLargeToLoad({ file, seen }: AttemptInput, heapMb: number): LoadAttempt {
  const problem = unloaded(file, `reading it takes more than ${heapMb} MB of memory`);
  const tried = new Map(seen.entries().map(([path, found]) => [path, digest(found)]));
  return { loaded: { problems: [problem] }, tried };
}

/** Starts program.ts. A bundle contains it, and recognizes the thread (build/program.ts). */
function startThread(options: WorkerOptions): Worker {
  if (!IS_BUNDLE) return new Worker(new URL("./program.ts", import.meta.url), options);
  const sea = process.getBuiltinModule("node:sea");
  if (!sea.isSea()) return new Worker(process.argv[1] as string, options);
  // The executable is not a script: its launcher reads the scripts at the end of the file again.
  return new Worker(sea.getAsset("launcher.cjs", "utf8"), { ...options, eval: true });
}
