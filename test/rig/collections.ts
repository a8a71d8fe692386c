/** What V8 says of its collections when it is started with `--trace-gc`. */
import { spawnSync } from "node:child_process";

/**
 * Runs a module in a process of its own. @returns by how many megabytes what it allocates outlives its use.
 * @throws Error when there were too few collections to say.
 */
export function outlivingScriptMb(script: string): number {
  // From a cache of code functions come without what V8 has learnt of them, and it collects at other times.
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const args = ["--trace-gc", "--no-allocation-site-pretenuring", "--input-type=module", "-e", script];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env });
  if (scavenges(stdout) <= 10) throw new Error(`too few collections: ${stderr}`);
  return outlivedMb(stdout);
}

/** By how many megabytes the heap grew from one collection of the young generation to the next: what outlived its use. */
export function outlivedMb(output: string): number {
  return output.split("Mark-Compact").reduce((sum, stretch) => {
    const left = [...stretch.matchAll(/Scavenge [\d.]+ \([\d.]+\) -> ([\d.]+) /g)].map(([, mb]) => Number(mb));
    return sum + ((left.at(-1) ?? 0) - (left[0] ?? 0));
  }, 0);
}

/** How many collections of the young generation there were. */
export const scavenges = (output: string): number => output.split("Scavenge").length - 1;
