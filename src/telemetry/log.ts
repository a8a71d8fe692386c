/** Logs: one JSON object a line, by pino; the only file that imports it. `lines-for-people.ts` has the other form. */
import { type DestinationStream, pino } from "pino";
import type { Clock } from "../values/time.ts";

export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
  debug(facts: object, message: string): void;
  /** An `info` line from members that are JSON already, a comma before each: what each request writes. */
  written(members: string, message: string): void;
}

interface LogOptions {
  readonly level: "silent" | "error" | "warn" | "info" | "debug";
  /** Where lines go; standard output unless given. */
  readonly destination?: { write(line: string): void };
}

/**
 * Makes the log of a process that writes to its standard output.
 * @param pretty lines for a person who looks on; a collector of logs wants JSON.
 */
export async function openLog(level: LogOptions["level"], pretty = false): Promise<Log> {
  if (!pretty) return createLog({ level });
  // A service never needs it, and it would be some forty modules of each start.
  const { linesForPeople } = await import("./lines-for-people.ts");
  return createLog({ level, destination: linesForPeople() });
}

/**
 * Makes the log of a process. Secrets never reach it by construction: credentials are `Secret` values, which print as
 * stars, and no stage hands a body or a header over; what remains is redacted by name as a last line of defence.
 */
export function createLog(options: LogOptions): Log {
  const destination: DestinationStream = options.destination ?? STANDARD_OUTPUT;
  const pinoLog = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: "***" },
    },
    destination,
  );
  const writer = (level: Level) => (facts: object, message: string) => {
    // To look for names in a flat line, and to write it member by member, costs ten times what JSON.stringify takes.
    if (needsPino(facts)) pinoLog[level](facts, message);
    else if (pinoLog.isLevelEnabled(level)) destination.write(flatLine(level, facts, message));
  };
  const written = (members: string, message: string) => {
    if (pinoLog.isLevelEnabled("info")) destination.write(lineOf("info", members, message));
  };
  return { info: writer("info"), warn: writer("warn"), error: writer("error"), debug: writer("debug"), written };
}

type Level = Exclude<keyof Log, "written">;

/** The same line as pino's. */
function flatLine(level: Level, facts: object, message: string): string {
  const members = JSON.stringify(facts).slice(1, -1);
  return lineOf(level, members === "" ? "" : `,${members}`, message);
}

/** @param members as JSON, a comma before each. */
function lineOf(level: Level, members: string, message: string): string {
  return `{"level":"${level}","time":"${isoTime(Date.now())}"${members},"msg":${JSON.stringify(message)}}\n`;
}

const MS_PER_S = 1_000;
/** The last line's time up to the point after its second, whose text the lines of that second share: 0.05 us for 1.3. */
let lastSecond = { number: Number.NaN, text: "" };

function isoTime(ms: number): string {
  const number = Math.floor(ms / MS_PER_S);
  if (number !== lastSecond.number) {
    lastSecond = { number, text: new Date(number * MS_PER_S).toISOString().slice(0, -"000Z".length) };
  }
  const part = ms - number * MS_PER_S;
  return `${lastSecond.text}${part < 10 ? "00" : part < 100 ? "0" : ""}${part}Z`;
}

const REDACTED = ["*.authorization", "*.apiKey", "*.key", "*.token", "*.password"];

/** Whether there is a place for a name that is redacted, or a value that JSON has no words for. */
function needsPino(facts: object): boolean {
  if (facts instanceof Error) return true;
  for (const name in facts) {
    const value = (facts as Record<string, unknown>)[name];
    if (typeof value === "bigint" || (typeof value === "object" && value !== null && !isList(value))) return true;
  }
  return false;
}

/** A list of words, as of what became of each try. */
function isList(value: object): boolean {
  return Array.isArray(value) && value.every((item) => typeof item !== "object" && typeof item !== "bigint");
}

/** The most that a pipe takes in one piece (PIPE_BUF of Linux). */
const PIECE_BYTES_MAX = 4_096;
/** Beyond it, lines of `info` and `debug` are dropped: some 17,000 of requests. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const LASTING = /^{"level":"(warn|error)"/;

/**
 * Writes the lines of one turn of the loop in few pieces, and what is left as the process ends. Workers share a pipe, and one that
 * is full cuts what is larger than a piece into the lines of others: a piece is of whole lines, and goes when the one before has
 * gone, since the stream would join those that wait.
 *
 * Whoever reads may have stopped, as a collector does whose disk is full: what waits for it is bounded, or the process would be
 * short of memory one day and turn its clients away for want of a log. Warnings and errors are kept: they are few, and may be of money.
 */
class GatheredOutput {
  readonly #pieces: string[] = [];
  #lastBytes = 0;
  #waitingBytes = 0;
  /** Since the line that told of the last ones. */
  #dropped = 0;
  #untaken = 0;
  #isScheduled = false;
  #isWriting = false;

  constructor() {
    process.on("exit", () => process.stdout.write(this.#pieces.splice(0).join("")));
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#waitingBytes + bytes > WAITING_BYTES_MAX && !LASTING.test(line)) {
      this.#dropped++;
      this.#untaken++;
      return;
    }
    this.#waitingBytes += bytes;
    const last = this.#pieces.length - 1;
    if (last < 0 || this.#lastBytes + bytes > PIECE_BYTES_MAX) {
      this.#pieces.push(line);
      this.#lastBytes = bytes;
    } else {
      this.#pieces[last] += line;
      this.#lastBytes += bytes;
    }
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    setImmediate(() => this.#writeNext());
  }

  /** Lines that were dropped since this was called last. */
  takeDropped(): number {
    const dropped = this.#untaken;
    this.#untaken = 0;
    return dropped;
  }

  #writeNext(): void {
    this.#isScheduled = false;
    const piece = this.#pieces.shift();
    this.#isWriting = piece !== undefined;
    if (piece === undefined) return;
    process.stdout.write(piece, () => {
      this.#waitingBytes -= Buffer.byteLength(piece);
      if (this.#dropped > 0 && this.#waitingBytes < WAITING_BYTES_MAX / 2) this.#tellOfDropped();
      this.#writeNext();
    });
  }

  #tellOfDropped(): void {
    const facts = { event: "log_lines_dropped", lines: this.#dropped };
    this.#dropped = 0;
    this.write(flatLine("warn", facts, "whoever reads this log did not keep up; lines were dropped here"));
  }
}

/** Of the process, so that the lines of several logs stay in order. */
const STANDARD_OUTPUT = new GatheredOutput();

/** Lines of this process that were dropped, as nobody read them, since this was asked last. */
export const takeDroppedLines = (): number => STANDARD_OUTPUT.takeDropped();

/* For what is tried again every second: logs a failure when its reason is new, else once a minute. */

const TOLD_AGAIN_MS = 60_000;

/** @returns the function to call at each failure; it calls `tell` when that is news. */
export function sparingly(clock: Clock, tell: (reason: string) => void): (reason: string) => void {
  let told: string | undefined;
  let toldMs = 0;
  return (reason) => {
    const nowMs = clock.monotonicMs();
    if (reason === told && nowMs - toldMs < TOLD_AGAIN_MS) return;
    told = reason;
    toldMs = nowMs;
    tell(reason);
  };
}
