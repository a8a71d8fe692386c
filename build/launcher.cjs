/**
 * The first script of the executable: gives V8 the program and its code cache, both appended to the executable (build/executable.ts).
 * Node's own code cache for single executables is made without running the program, so it has hardly any functions.
 */
const { fstatSync, openSync, readSync } = require("node:fs");
const { basename, dirname } = require("node:path");
const { isSea } = require("node:sea");
const { Script } = require("node:vm");

/** Wraps a script in the function of a CommonJS module. */
exports.wrapped = (code) => `(function (exports, require, module, __filename, __dirname) {${code}\n})`;

/** @param cachedData the result of `createCachedData` for the same text, from the same V8 with the same flags. */
const scriptOf = (name, text, cachedData) => new Script(text, { filename: `tollgate-${name}`, cachedData });
exports.scriptOf = scriptOf;

/** The scripts of a program (build/bundle.ts). The first one is run; the last one is not needed at a start. */
const NAMES = ["program.cjs", "start.cjs", "rolldown-runtime.cjs", "later.cjs"];
exports.names = NAMES;

/** The last four bytes; they show that the file is complete. */
const MARK = 0x74676c32;

/** Returns what is appended to a file: the parts, then their lengths in bytes and the mark (32 bits, native byte order). */
exports.appended = (parts) => {
  const ends = Uint32Array.of(...parts.map(({ length }) => length), MARK);
  return Buffer.concat([...parts, Buffer.from(ends.buffer)]);
};

/**
 * Opens a file with this many parts. It stays open, because later the path may have another build. The parts are not assets of Node's single
 * executable: these belong to the program's image, and what is read of that stays resident as long as the process lives.
 * @returns a function that reads a part by its index.
 */
function partsOf(file, count) {
  const fd = openSync(file, "r");
  const ends = new Uint32Array(count + 1);
  const end = fstatSync(fd).size - ends.byteLength;
  readSync(fd, ends, 0, ends.byteLength, end);
  if (ends[count] !== MARK) {
    throw new Error("The executable is damaged at its end: it was cut, or something was appended. Copy it again.");
  }
  return (index) => {
    const part = Buffer.allocUnsafeSlow(ends[index]);
    const fromEnd = ends.subarray(index, count).reduce((sum, length) => sum + length, 0);
    readSync(fd, part, 0, part.length, end - fromEnd);
    return part;
  };
}

/** The parts of the running file; opened by its path if /proc does not lead to it. */
function ownParts(path, count) {
  try {
    return partsOf(process.platform === "linux" ? "/proc/self/exe" : path, count);
  } catch (error) {
    try {
      return partsOf(path, count);
    } catch {
      const isClosed = error.code === "EACCES";
      process.stderr.write(`${isClosed ? `The user that runs ${path} needs permission to read it.` : error.message}\n`);
      process.exit(1);
    }
  }
}

/**
 * Runs the first script, and the others when they are required.
 * @param scriptNamed returns a script by its name.
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
      // Like Node's require: a module that failed is removed, and the next caller loads it again.
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
  // workers would not understand this one's messages.
  if (process.platform === "linux") process.execPath = `/proc/${process.pid}/exe`;
  const partAt = ownParts(execPath, 2 * NAMES.length);
  exports.run((name) => {
    const at = 2 * NAMES.indexOf(name);
    return scriptOf(name, partAt(at).latin1Slice(), partAt(at + 1));
  }, execPath);
}
