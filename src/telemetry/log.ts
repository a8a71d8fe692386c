/** Logs: one JSON object a line, by pino, or lines for people by pino-pretty; the only file that imports them. */
import { type DestinationStream, pino } from "pino";
import pretty from "pino-pretty";

export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
  debug(facts: object, message: string): void;
}

interface LogOptions {
  readonly level: "silent" | "error" | "warn" | "info" | "debug";
  /** Where lines go; standard output unless given. */
  readonly destination?: { write(line: string): void };
  /** Lines for a person who looks on; a collector of logs wants JSON. */
  readonly pretty?: boolean | undefined;
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
    destinationOf(options),
  );
}

function destinationOf({ destination, pretty: forPeople }: LogOptions): DestinationStream {
  const to = (destination ?? process.stdout) as DestinationStream;
  if (!forPeople) return to;
  return pretty({
    destination: to as NodeJS.WritableStream,
    colorize: destination === undefined && process.stdout.isTTY,
    translateTime: "SYS:HH:MM:ss.l",
    singleLine: true,
    // A log line stays one line, even if its values hold line breaks.
    ignore: "pid,hostname",
  });
}
