/**
 * What the executable runs first: it gives V8 the program and what V8 has compiled of it before, both at the end of the
 * executable (build/executable.ts). Node's own code cache for single executables is made without running the program, and so
 * has hardly a function in it.
 */
const { fstatSync, openSync, readSync } = require("node:fs");
const { basename, dirname } = require("node:path");
const { isSea } = require("node:sea");
const { Script } = require("node:vm");

/** A program as a function of what a CommonJS module is given. */
exports.wrapped = (code) => `(function (exports, require, module, __filename, __dirname) {${code}\n})`;

/** @param cachedData what `createCachedData` of the same text gave, under the same V8 and the same flags of it. */
const scriptOf = (name, text, cachedData) => new Script(text, { filename: `tollgate-${name}`, cachedData });
exports.scriptOf = scriptOf;

/** The scripts of a program (build/bundle.ts), first the one that is run; the last one is not required by a start. */
const NAMES = ["program.cjs", "start.cjs", "rolldown-runtime.cjs", "later.cjs"];
exports.names = NAMES;

/** The last four bytes, by which it is known whether the file is whole. */
const MARK = 0x74676c32;

/** What is appended to a file: the parts, then as 32 bits each of this machine's how many bytes they have, and the mark. */
exports.appended = (parts) => {
  const ends = Uint32Array.of(...parts.map(({ length }) => length), MARK);
  return Buffer.concat([...parts, Buffer.from(ends.buffer)]);
};

/**
 * Opens a file with so many parts, for good: by its name there may be another build later.
 * @returns a function that reads one. Not as an asset of Node's, which is a piece of the program's image: what is read of that stays
 * resident for as long as the process lasts.
 */
function partsOf(file, count) {
  const fd = openSync(file, "r");
  const ends = new Uint32Array(count + 1);
  const end = fstatSync(fd).size - ends.byteLength;
  readSync(fd, ends, 0, ends.byteLength, end);
  if (ends[count] !== MARK) {
    throw new Error("The executable's end is not its own: it was cut, or something was appended. Copy it again.");
  }
  return (index) => {
    const part = Buffer.allocUnsafeSlow(ends[index]);
    const behind = ends.subarray(index, count).reduce((sum, length) => sum + length, 0);
    readSync(fd, part, 0, part.length, end - behind);
    return part;
  };
}

/** The parts of the file that runs; by its path where there is no /proc, or another process's. */
function ownParts(path, count) {
  try {
    return partsOf(process.platform === "linux" ? "/proc/self/exe" : path, count);
  } catch (error) {
    try {
      return partsOf(path, count);
    } catch {
      const isClosed = error.code === "EACCES";
      process.stderr.write(`${isClosed ? `Whoever runs ${path} must be allowed to read it.` : error.message}\n`);
      process.exit(1);
    }
  }
}

/**
 * Runs the first script, and the others when they are required.
 * @param scriptNamed gives a script by its name.
 */
exports.run = (scriptNamed, file) => {
  const modules = new Map();
  const load = (name) => {
    const known = modules.get(name);
    if (known) return known.exports;
    const module = { exports: {} };
    modules.set(name, module);
    const required = (wanted) => (NAMES.includes(basename(wanted)) ? load(basename(wanted)) : require(wanted));
    try {
      scriptNamed(name).runInThisContext()(module.exports, required, module, file, dirname(file));
    } catch (error) {
      // As Node's require does: half a module is none, and the next who wants it tries again.
      modules.delete(name);
      throw error;
    }
    return module.exports;
  };
  load(NAMES[0]);
};

if (isSea()) {
  const { execPath } = process;
  // Workers are started from this process's own image: the file may have been replaced by another build since, whose
  // workers would not know this one's messages.
  if (process.platform === "linux") process.execPath = `/proc/${process.pid}/exe`;
  const partAt = ownParts(execPath, 2 * NAMES.length);
  exports.run((name) => {
    const at = 2 * NAMES.indexOf(name);
    return scriptOf(name, partAt(at).latin1Slice(), partAt(at + 1));
  }, execPath);
}
