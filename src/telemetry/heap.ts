/**
 * What of a process that serves becomes old, and that its heap becomes small again. What a start or a peak has taken, V8 gives back
 * only when its host says that it is idle, which Node never does: a gateway of 138 MB would be one of 178 for ever, and one that
 * had a peak as large as then.
 */
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { type Clock, systemClock } from "../values/time.ts";

/**
 * Sets V8 up for a process that serves; before it begins to. V8 takes no code cache that was made under other settings
 * (build/warm.cjs).
 *
 * What is made is put among the young objects, wherever in the code that is. V8 would make the arrays and objects of a place
 * old from the beginning, once most of those that it looked at there had outlived a collection, as those of 32 requests at once
 * may have. Old ones are collected only with the whole heap, and whatever they hold with them: with one such place, as the list of
 * the steps of a turn, all of a request's 6 KB became old, in some starts of a process and not in others.
 *
 * What its middle compiler (Maglev) has needed for a function is let go of when that is compiled. V8 leaves it to another thread,
 * later, and 40 MB of malloc are in pieces by then.
 */
export function tuneHeap(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
  setFlagsFromString("--no-maglev-destroy-on-background");
}

/** How often it looks whether the process is idle, and how little it does then. */
const LOOK_MS = 1_000;
const QUIET_CPU_MS = 20;
/**
 * So many looks in a row find nothing to do before a collection, a minute: it drops code that was compiled, too, which the next
 * requests would wait for.
 */
const QUIET_LOOKS = 60;
/** A collection takes a tenth of a second: it must give something back. */
const GROWN_BYTES = 32 * 1024 * 1024;
/**
 * Looks between two collections of a process that is short of memory, twice as many each time that one gives little back: requests are
 * turned away soon, or already. What a flood of large bodies has left is garbage that V8 is in no hurry to collect, since whoever is refused makes none: for a
 * minute everybody would be.
 */
const CRAMPED_LOOKS = { least: 3, most: 30 } as const;
/** Share of its memory that a collection must give back to be worth another one so soon: a busy process always makes some garbage. */
const CRAMPED_SHARE = 0.1;
const US_PER_MS = 1_000;

/** Begins to look after the heap of a gateway that has started, for as long as its process lasts. */
export function tendHeap(
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

/** Collects all there is and gives it back, in one pause. Rejects where it cannot, or not all of it. */
async function collect(): Promise<void> {
  // Not imported: a Node may be built without it, and few processes come here more than once.
  const { Session } = process.getBuiltinModule("node:inspector/promises");
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.collectGarbage").finally(() => session.disconnect());
  trimMalloc();
}

/**
 * Gives back what malloc of glibc has free between what is in use, which it never does by itself: 34 MB after 20,000 whole replies,
 * in 40 ms (15 MB in 8 ms with one heap of malloc, docs/operation.md). It is asked by Node's own way to C functions, where Node has one.
 */
function trimMalloc(): void {
  if (process.platform !== "linux") return;
  const ffi = withoutWarning(() => process.getBuiltinModule("node:ffi"));
  // Throws where this is another Node or another C library; then malloc stays as large as it is.
  const { lib, functions } = ffi.dlopen("libc.so.6", { malloc_trim: { arguments: ["uint64"], return: "int32" } });
  functions.malloc_trim(0n);
  lib.close();
}

/** Without the warning that Node prints of a module that may still change. */
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
  /** Whether it is short of memory. */
  readonly isCramped: () => boolean;
  /** CPU time of the process so far. */
  readonly spentMs: () => number;
  readonly residentBytes: () => number;
  readonly collect: () => Promise<void>;
}

/** Collects when the process is idle and has grown since it was last small, and when it is short of memory. */
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

  /** Begins to look, each second. */
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
    // Where it cannot be done the process is as large as it was.
    collect().then(done, done);
  }
}
