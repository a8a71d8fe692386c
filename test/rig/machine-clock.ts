/**
 * The wall clock of a process, moved by the test while it runs (libfaketime). The monotonic clock is not changed, as
 * when an administrator sets a machine's date.
 */
import { globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface MachineClock {
  /** The environment for the process with this clock. */
  readonly env: Readonly<Record<string, string>>;
  /** Sets by how many seconds the process is ahead of this machine from now on, or behind it if negative. */
  setOffset(seconds: number): void;
  close(): void;
}

export function machineClock(offsetSeconds = 0): MachineClock {
  const [library] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");
  if (library === undefined) throw new Error("libfaketime is missing: install the Debian package libfaketime");
  const dir = mkdtempSync(join(tmpdir(), "tollgate-clock-"));
  const file = join(dir, "clock");
  const setOffset = (seconds: number): void => {
    // Renamed into place, so that no incomplete file is read.
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
