/**
 * The wall clock of a process, moved by the test while it runs (libfaketime). The monotonic clock is left alone, as a
 * machine's is when somebody sets its date.
 */
import { globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface MachineClock {
  /** For the process that is to live in this time. */
  readonly env: Readonly<Record<string, string>>;
  /** From now on the process is so many seconds ahead of this machine, or behind it when negative. */
  setOffset(seconds: number): void;
  close(): void;
}

export function machineClock(offsetSeconds = 0): MachineClock {
  const [library] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");
  if (library === undefined) throw new Error("libfaketime is missing: install the Debian package libfaketime");
  const dir = mkdtempSync(join(tmpdir(), "tollgate-clock-"));
  const file = join(dir, "clock");
  const setOffset = (seconds: number): void => {
    // Renamed into place, so that no half is read.
    writeFileSync(`${file}.new`, `${seconds < 0 ? "" : "+"}${seconds}\n`);
    renameSync(`${file}.new`, file);
  };
  setOffset(offsetSeconds);
  return {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      DONT_FAKE_MONOTONIC: "1",
      NO_FAKE_STAT: "1",
    },
    setOffset,
    close: () => rmSync(dir, { recursive: true, force: true }),
  };
}
