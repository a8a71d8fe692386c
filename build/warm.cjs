/**
 * Run by build/executable.ts in the Node of the executable, with `flags` below: reads the wrapped program (first
 * argument) with all modules of a gateway, and writes what V8 has compiled for that to a file (second argument). With a
 * third argument it only says whether V8 takes what was written.
 *
 * Reading modules is the larger part of a start, and happens in one order. To start a gateway would compile a little
 * more (a start would take a tenth less), but in an order that the disk decides, and two builds would differ.
 */
const { readFileSync, writeFileSync } = require("node:fs");
const { setFlagsFromString } = require("node:v8");
const { run, scriptOf } = require("./launcher.cjs");

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
  const [, , program, cache, isCheck] = process.argv;
  const text = readFileSync(program, "latin1");
  if (isCheck) {
    if (scriptOf(text, readFileSync(cache)).cachedDataRejected) throw new Error("V8 does not take its own code cache");
  } else {
    const script = scriptOf(text, undefined);
    globalThis.tollgateRead = () => {
      for (const [, usual] of FLAGS) setFlagsFromString(usual);
      writeFileSync(cache, script.createCachedData());
      process.exit(0);
    };
    run(script, program);
  }
}
