/** What the figures were measured on. */
import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import process from "node:process";

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly node: string;
  readonly nginx: string;
  readonly redis: string;
  readonly linux: string;
}

/** The version shown for a program that is not installed. */
export const MISSING = "missing";

const VERSION_OPTIONS: Readonly<Record<string, string>> = { nginx: "-v", "redis-server": "--version", uname: "-sr" };

export function machineFacts(): Machine {
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    node: process.version,
    nginx: versionOf("nginx"),
    redis: versionOf("redis-server"),
    linux: versionOf("uname"),
  };
}

/** The first text that looks like a version in a program's output; nginx prints it to standard error. */
export function versionOf(program: string): string {
  const option = VERSION_OPTIONS[program] ?? "--version";
  try {
    const said = execFileSync("sh", ["-c", '"$0" "$1" 2>&1', program, option], { encoding: "utf8" });
    return /\d+\.\d+[^\s,]*/.exec(said)?.[0] ?? "unknown";
  } catch {
    return MISSING;
  }
}
