/** Logs: one JSON object a line, by pino; the only file that imports it. */
import { type DestinationStream, pino } from "pino";

export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
  debug(facts: object, message: string): void;
}

export interface LogOptions {
  readonly level: "silent" | "error" | "warn" | "info" | "debug";
  /** Where lines go; standard output unless given. */
  readonly destination?: { write(line: string): void };
}

/**
 * Makes the log of a process. Secrets never reach it by construction: credentials are `Secret` values, which print as
 * stars, and no stage hands a body or a header over; what remains is redacted by name as a last line of defence.
 */
export function createLog(options: LogOptions): Log {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ["*.authorization", "*.apiKey", "*.key", "*.token", "*.password"], censor: "***" },
    },
    (options.destination ?? process.stdout) as DestinationStream,
  );
}
