/** Logs: one JSON object per line, by pino; the only file that imports it. `lines-for-people.ts` has the other form. */
import { type DestinationStream, pino } from "pino";
import type { Clock } from "../values/time.ts";

export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
  debug(facts: object, message: string): void;
  /** Writes an `info` line from members that are JSON already, with a comma before each; used for each request. */
  written(members: string, message: string): void;
}

interface LogOptions {
  readonly level: "silent" | "error" | "warn" | "info" | "debug";
  /** Where lines go; default: standard output. */
  readonly destination?: { write(line: string): void };
}

/**
 * Makes the log of a process that writes to its standard output.
 * @param pretty lines for people instead of JSON, which log collectors need.
 */
export async function openLog(level: LogOptions["level"], pretty = false): Promise<Log> {
  if (!pretty) return createLog({ level });
  // Imported on demand: a service never needs it, and it would add about forty modules to each start.
  const { linesForPeople } = await import("./lines-for-people.ts");
  return createLog({ level, destination: linesForPeople() });
}

/**
 * Makes the log of a process. By construction no secrets reach it: credentials are `Secret` values, which print as
 * stars, and no stage logs a body or a header. As a last line of defense, members are also redacted by name.
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
    // For flat facts JSON.stringify is ten times as fast as pino, which checks names for redaction and writes member by
    // member.
    if (needsPino(facts)) pinoLog[level](facts, message);
    else if (pinoLog.isLevelEnabled(level)) destination.write(flatLine(level, facts, message));
  };
  const written = (members: string, message: string) => {
    if (pinoLog.isLevelEnabled("info")) destination.write(lineOf("info", members, message));
  };
  return { info: writer("info"), warn: writer("warn"), error: writer("error"), debug: writer("debug"), written };
}

type Level = Exclude<keyof Log, "written">;

/** The same line as pino would write. */
function flatLine(level: Level, facts: object, message: string): string {
  const members = JSON.stringify(facts).slice(1, -1);
  return lineOf(level, members === "" ? "" : `,${members}`, message);
}

/** @param members as JSON, with a comma before each. */
function lineOf(level: Level, members: string, message: string): string {
  return `{"level":"${level}","time":"${isoTime(Date.now())}"${members},"msg":${JSON.stringify(message)}}\n`;
}

const MS_PER_S = 1_000;
/** The time of the last line up to the decimal point. The lines of the same second share it: 0.05 us instead of 1.3. */
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

/** Whether pino must write the facts: they may have a redacted name or a value that JSON cannot express. */
function needsPino(facts: object): boolean {
  if (facts instanceof Error) return true;
  for (const name in facts) {
    const value = (facts as Record<string, unknown>)[name];
    if (typeof value === "bigint" || (typeof value === "object" && value !== null && !isList(value))) return true;
  }
  return false;
}

/** Whether it is a list of plain values, for example the outcome of each attempt. */
function isList(value: object): boolean {
  return Array.isArray(value) && value.every((item) => typeof item !== "object" && typeof item !== "bigint");
}

/** The maximum that a pipe writes atomically (PIPE_BUF of Linux). */
const PIECE_BYTES_MAX = 4_096;
/** Above this, `info` and `debug` lines are dropped; it is about 17,000 request lines. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const LASTING = /^{"level":"(warn|error)"/;

/**
 * Writes the lines of one turn of the event loop in few pieces, and the rest when the process ends. Workers share a
 * pipe. When the pipe is full, a write larger than a piece is split and mixed with the lines of other workers. So a
 * piece has only whole lines, and is written only after the one before, because the stream would join pieces that wait.
 *
 * The reader may have stopped, for example a log collector whose disk is full. What waits for it is bounded; without a
 * limit the process would run short of memory and refuse clients. Warnings and errors are always kept: they are few and
 * may concern money.
 */
class GatheredOutput {
  readonly #pieces: string[] = [];
  #lastBytes = 0;
  #waitingBytes = 0;
  /** Lines dropped since the last `log_lines_dropped` line. */
  #dropped = 0;
  /** Lines dropped since the last `takeDropped`. */
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

  /** Lines dropped since the last call. */
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
      if (this.#dropped > 0 && this.#waitingBytes < WAITING_BYTES_MAX / 2) this.#reportDropped();
      this.#writeNext();
    });
  }

  #reportDropped(): void {
    const facts = { event: "log_lines_dropped", lines: this.#dropped };
    this.#dropped = 0;
    this.write(flatLine("warn", facts, "the reader of this log did not keep up; lines were dropped here"));
  }
}

/** One per process, so that the lines of several logs stay in order. */
const STANDARD_OUTPUT = new GatheredOutput();

/** Log lines of this process that were dropped since the last call, because nothing read them. */
export const takeDroppedLines = (): number => STANDARD_OUTPUT.takeDropped();

/* For what is retried every second: reports a failure when its reason is new, else once a minute. */

const REPEAT_MS = 60_000;

/**
 * @returns the function to call at each failure; it calls `report` if the reason is new or was last reported a minute
 * ago.
 */
export function withoutRepeats(clock: Clock, report: (reason: string) => void): (reason: string) => void {
  let last: string | undefined;
  let lastMs = 0;
  return (reason) => {
    const nowMs = clock.monotonicMs();
    if (reason === last && nowMs - lastMs < REPEAT_MS) return;
    last = reason;
    lastMs = nowMs;
    report(reason);
  };
}
