/** The log in the form for people, by pino-pretty; the only file that imports it. */
import pretty from "pino-pretty";

/** @param destination where lines go; default: standard output, in color if it is a terminal. */
export function linesForPeople(destination?: NodeJS.WritableStream): { write(line: string): void } {
  return pretty({
    destination: destination ?? process.stdout,
    colorize: destination === undefined && process.stdout.isTTY,
    translateTime: "SYS:HH:MM:ss.l",
    // A log line stays one line, even if its values have line breaks.
    singleLine: true,
    ignore: "pid,hostname",
  });
}
