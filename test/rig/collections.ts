/** What V8 says of its collections when it is started with `--trace-gc`. */

/** By how many megabytes the heap grew from one collection of the young generation to the next: what outlived its use. */
export function outlivedMb(output: string): number {
  return output.split("Mark-Compact").reduce((sum, stretch) => {
    const left = [...stretch.matchAll(/Scavenge [\d.]+ \([\d.]+\) -> ([\d.]+) /g)].map(([, mb]) => Number(mb));
    return sum + ((left.at(-1) ?? 0) - (left[0] ?? 0));
  }, 0);
}

/** How many collections of the young generation there were. */
export const scavenges = (output: string): number => output.split("Scavenge").length - 1;
