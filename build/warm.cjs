/**
 * Run by build/executable.ts in the Node of the executable, with `flags` below, in a folder with the wrapped scripts. Loads all modules of a
 * gateway and writes V8's code cache of each script to a file next to it. With an argument it only checks that V8 accepts these files.
 *
 * Loading modules is the larger part of a start and has a fixed order. Starting a gateway here would compile a little more (a start would
 * take a tenth less time), but in an order that depends on the disk, so that two builds would differ.
 */
const { readFileSync, writeFileSync } = require("node:fs");
const { setFlagsFromString } = require("node:v8");
const { names, run, scriptOf } = require("./launcher.cjs");

/** Pairs: a flag that makes runs reproducible, and its default, which is restored because V8 rejects a cache made under other flags. */
const FLAGS = [
  ["--hash-seed=1", "--hash-seed=0"],
  ["--random-seed=1", "--random-seed=0"],
  // Compiled code is never dropped, and no function is optimized by its profile, because the time of either varies.
  ["--no-flush-bytecode", "--flush-bytecode"],
  ["--min-semi-space-size=64", "--min-semi-space-size=0"],
  ["--no-sparkplug", "--sparkplug"],
  ["--no-profile-guided-optimization", "--profile-guided-optimization"],
];

exports.flags = FLAGS.map(([flag]) => flag);

if (require.main === module) {
  const isCheck = process.argv.length > 2;
  const cacheOf = (name) => `${name}.cache`;
  const later = names.at(-1);
  const scripts = new Map();
  const scriptNamed = (name) => {
    const script = scriptOf(name, readFileSync(name, "latin1"), isCheck ? readFileSync(cacheOf(name)) : undefined);
    scripts.set(name, script);
    if (script.cachedDataRejected) throw new Error(`V8 rejects its own code cache of ${name}`);
    return script;
  };
  const keep = (name) => isCheck || writeFileSync(cacheOf(name), scripts.get(name).createCachedData());
  globalThis.tollgateRead = (tune) => {
    if (!isCheck) scriptNamed(later);
    for (const [, usual] of isCheck ? [] : FLAGS) setFlagsFromString(usual);
    for (const name of names.slice(0, -1)) keep(name);
    tune();
    if (isCheck) scriptNamed(later);
    keep(later);
    process.exit(0);
  };
  run(scriptNamed, names[0]);
}
