/** The log as a person reads it, by pino-pretty; the only file that imports it. */
import pretty from "pino-pretty";

/** @param destination where lines go; standard output, in colours where it is a terminal, unless given. */
export function linesForPeople(destination?: NodeJS.WritableStream): { write(line: string): void } {
  return pretty({
    destination: destination ?? process.stdout,
    colorize: destination === undefined && process.stdout.isTTY,
    translateTime: "SYS:HH:MM:ss.l",
    singleLine: true,
    // A log line stays one line, even if its values hold line breaks.
    ignore: "pid,hostname",
  });
}
