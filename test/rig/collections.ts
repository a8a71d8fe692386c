/** Reads the garbage collections that V8 reports with `--trace-gc`. */
import { spawnSync } from "node:child_process";

/**
 * Runs a module in a separate process. @returns how many megabytes of its allocations outlive their use.
 * @throws Error if there were too few collections to decide.
 */
export function outlivingScriptMb(script: string): number {
  // Functions from a code cache lack V8's feedback about them, and V8 collects at other times.
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const args = ["--trace-gc", "--no-allocation-site-pretenuring", "--input-type=module", "-e", script];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env });
  if (scavenges(stdout) <= 10) throw new Error(`too few collections: ${stderr}`);
  return outlivedMb(stdout);
}

/**
 * How many megabytes the heap grew between collections of the young generation, because allocations outlived their use.
 */
export function outlivedMb(output: string): number {
  return output.split("Mark-Compact").reduce((sum, stretch) => {
    const left = [...stretch.matchAll(/Scavenge [\d.]+ \([\d.]+\) -> ([\d.]+) /g)].map(([, mb]) => Number(mb));
    return sum + ((left.at(-1) ?? 0) - (left[0] ?? 0));
  }, 0);
}

/** The number of collections of the young generation. */
export const scavenges = (output: string): number => output.split("Scavenge").length - 1;
