/**
 * `node bench/hottest.ts FILE.cpuprofile [COUNT]`: the functions of a CPU profile that took the most time themselves.
 * Profiles come from `node bench/run.ts --cpu-prof DIR`.
 */
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import process from "node:process";

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

const DEFAULT_COUNT = 15;
/** Not work of the program. */
const IDLE = "(idle)";

const [file, count = String(DEFAULT_COUNT)] = process.argv.slice(2);
if (file === undefined) throw new Error("name a .cpuprofile file");
const profile = JSON.parse(readFileSync(file, "utf8")) as Profile;

const names = new Map(profile.nodes.map((node) => [node.id, nameOf(node)]));
const selfUs = new Map<string, number>();
profile.samples.forEach((id, i) => {
  const name = names.get(id) ?? "?";
  selfUs.set(name, (selfUs.get(name) ?? 0) + (profile.timeDeltas[i] ?? 0));
});
selfUs.delete(IDLE);
const totalUs = [...selfUs.values()].reduce((sum, us) => sum + us, 0);
const hottest = [...selfUs].sort(([, a], [, b]) => b - a).slice(0, Number(count));
for (const [name, us] of hottest) {
  process.stdout.write(`${((100 * us) / totalUs).toFixed(1).padStart(5)} %  ${name}\n`);
}

/** A function and where it is: the last two parts of the path say enough. */
function nameOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const place = url === "" ? "" : `  ${basename(dirname(url))}/${basename(url)}:${lineNumber + 1}`;
  return `${functionName || "(anonymous)"}${place}`;
}
