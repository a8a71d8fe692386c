/**
 * Controls which objects V8 moves to the old generation, and shrinks the heap again. V8 returns the memory of a start
 * or a peak only when its host reports that it is idle, which Node never does. Without this, a gateway of 138 MB would
 * stay at 178 MB forever, and after a peak at the size of the peak.
 */
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { type Clock, systemClock } from "../values/time.ts";

/**
 * Sets V8 flags for a process that serves; call it before serving. V8 rejects a code cache that was made under other
 * flags (build/warm.cjs).
 *
 * --no-allocation-site-pretenuring: all new objects are allocated in the young generation. By default, once most
 * objects of an allocation site have survived a collection (as with 32 requests at once), V8 allocates the site's
 * objects directly in the old generation. There only a full collection frees them and everything that they reference.
 * With one such site, for example the list of the steps of a turn, all of a request's 6 KB became old, in some starts
 * of a process and not in others.
 *
 * --no-maglev-destroy-on-background: the memory that the middle compiler (Maglev) used for a function is freed as soon
 * as the function is compiled. By default V8 leaves that to another thread, later, when 40 MB of malloc memory are
 * fragmented.
 */
export function tuneHeap(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
  setFlagsFromString("--no-maglev-destroy-on-background");
}

/** How often the process is checked for being idle, and the CPU time per check up to which it counts as idle. */
const LOOK_MS = 1_000;
const QUIET_CPU_MS = 20;
/**
 * Idle checks in a row before a collection: one minute. Not earlier, because a collection also drops compiled code, and
 * the next requests would wait for its compilation.
 */
const QUIET_LOOKS = 60;
/** A collection takes a tenth of a second, so the process must have grown at least this much. */
const GROWN_BYTES = 32 * 1024 * 1024;
/**
 * Checks between two collections while the process is short of memory, when requests are refused soon or already. The
 * number doubles each time that a collection frees little. A flood of large bodies leaves garbage that V8 does not
 * collect soon, because refused requests allocate almost nothing: without this, everyone would be refused for a minute.
 */
const CRAMPED_LOOKS = { least: 3, most: 30 } as const;
/**
 * Share of the memory that a collection must free to justify the next one soon; a busy process always has some garbage.
 */
const CRAMPED_SHARE = 0.1;
const US_PER_MS = 1_000;

/** Starts to watch the heap of a running gateway, until its process ends. */
export function watchHeap(
  gateway: { upstreams(): readonly { readonly inFlight: number }[]; isShortOfMemory(): boolean },
  clock: Pick<Clock, "after"> = systemClock,
): void {
  const isServing = () => gateway.upstreams().some(({ inFlight }) => inFlight > 0);
  const residentBytes = () => process.memoryUsage.rss();
  const isCramped = () => gateway.isShortOfMemory();
  new IdleHeap({ clock, isServing, isCramped, spentMs, residentBytes, collect }).start();
}

function spentMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / US_PER_MS;
}

/** Collects all garbage and returns the memory to the system, in one pause. Rejects if any of this is not possible. */
async function collect(): Promise<void> {
  // Not imported at the top: a Node may be built without it, and few processes come here more than once.
  const { Session } = process.getBuiltinModule("node:inspector/promises");
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.collectGarbage").finally(() => session.disconnect());
  trimMalloc();
}

/**
 * Returns memory that glibc's malloc has free between blocks in use, which malloc never does by itself: 34 MB after
 * 20,000 complete replies, in 40 ms (15 MB in 8 ms with one malloc arena, docs/operation.md). Called through Node's
 * FFI, if this Node has it.
 */
function trimMalloc(): void {
  if (process.platform !== "linux") return;
  const ffi = withoutWarning(() => process.getBuiltinModule("node:ffi"));
  // Throws with another Node or another C library; malloc then keeps its memory.
  const { lib, functions } = ffi.dlopen("libc.so.6", { malloc_trim: { arguments: ["uint64"], return: "int32" } });
  functions.malloc_trim(0n);
  lib.close();
}

/** Suppresses the warning that Node prints for an experimental module. */
function withoutWarning<T>(work: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

interface IdleParts {
  readonly clock: Pick<Clock, "after">;
  /** Whether any request is being answered. */
  readonly isServing: () => boolean;
  /** Whether the process is short of memory. */
  readonly isCramped: () => boolean;
  /** CPU time of the process so far. */
  readonly spentMs: () => number;
  readonly residentBytes: () => number;
  readonly collect: () => Promise<void>;
}

/** Collects when the process is idle and has grown since the last collection, and when it is short of memory. */
export class IdleHeap {
  readonly #parts: IdleParts;
  #spentMs = 0;
  #quietLooks = 0;
  #looksSince: number = CRAMPED_LOOKS.least;
  #crampedLooks: number = CRAMPED_LOOKS.least;
  #smallBytes = 0;

  constructor(parts: IdleParts) {
    this.#parts = parts;
  }

  /** Starts to check every second. */
  start(): void {
    this.#lookLater();
  }

  #lookLater(): void {
    this.#spentMs = this.#parts.spentMs();
    this.#parts.clock.after(LOOK_MS, () => this.#look());
  }

  #look(): void {
    const { spentMs, isServing, isCramped, residentBytes, collect } = this.#parts;
    const isQuiet = spentMs() - this.#spentMs < QUIET_CPU_MS && !isServing();
    this.#quietLooks = isQuiet ? this.#quietLooks + 1 : 0;
    this.#looksSince++;
    const beforeBytes = residentBytes();
    const hasRested = this.#quietLooks >= QUIET_LOOKS && beforeBytes - this.#smallBytes >= GROWN_BYTES;
    if (!hasRested && (this.#looksSince < this.#crampedLooks || !isCramped())) {
      this.#lookLater();
      return;
    }
    this.#quietLooks = 0;
    this.#looksSince = 0;
    const done = () => {
      this.#smallBytes = residentBytes();
      const gaveLittle = beforeBytes - this.#smallBytes < Math.max(GROWN_BYTES, CRAMPED_SHARE * beforeBytes);
      this.#crampedLooks = gaveLittle ? Math.min(this.#crampedLooks * 2, CRAMPED_LOOKS.most) : CRAMPED_LOOKS.least;
      this.#lookLater();
    };
    // If the collection fails, the process stays as large as it was.
    collect().then(done, done);
  }
}
