/**
 * Run by build/executable.ts in the Node of the executable, with `flags` below, in a folder with the wrapped scripts: reads all
 * modules of a gateway, and writes what V8 has compiled of each script for that to a file beside it. With an argument it only says
 * whether V8 takes what was written.
 *
 * Reading modules is the larger part of a start, and happens in one order. To start a gateway would compile a little
 * more (a start would take a tenth less), but in an order that the disk decides, and two builds would differ.
 */
const { readFileSync, writeFileSync } = require("node:fs");
const { setFlagsFromString } = require("node:v8");
const { names, run, scriptOf } = require("./launcher.cjs");

/** Each: what makes two runs alike, and its opposite, since V8 refuses what was compiled under other flags than its own. */
const FLAGS = [
  ["--hash-seed=1", "--hash-seed=0"],
  ["--random-seed=1", "--random-seed=0"],
  // No function is forgotten, none is compiled further by what was seen of it, whenever that would have been.
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
    if (script.cachedDataRejected) throw new Error(`V8 does not take its own code cache of ${name}`);
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
