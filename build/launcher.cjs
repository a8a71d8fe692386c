/**
 * What the executable runs first: it gives V8 the program and what V8 has compiled of it before, both at the end of the
 * executable (build/executable.ts). Node's own code cache for single executables is made without running the program, and so
 * has hardly a function in it.
 */
const { closeSync, fstatSync, openSync, readSync } = require("node:fs");
const { dirname } = require("node:path");
const { isSea } = require("node:sea");
const { Script } = require("node:vm");

/** A program as a function of what a CommonJS module is given. */
exports.wrapped = (code) => `(function (exports, require, module, __filename, __dirname) {${code}\n})`;

/** @param cachedData what `createCachedData` of the same text gave, under the same V8 and the same flags of it. */
exports.scriptOf = (text, cachedData) => new Script(text, { filename: "tollgate.cjs", cachedData });

/** The last four bytes, by which it is known whether the file is whole. */
const MARK = 0x74676c31;

/** What is appended to a file: the parts, then as 32 bits each of this machine's how many bytes they have, and the mark. */
exports.appended = (parts) => {
  const ends = Uint32Array.of(...parts.map(({ length }) => length), MARK);
  return Buffer.concat([...parts, Buffer.from(ends.buffer)]);
};

/**
 * Reads so many parts. Not as an asset of Node's, which is a piece of the program's image: what is read of that stays resident
 * for as long as the process lasts.
 */
function partsOf(file, count) {
  const fd = openSync(file, "r");
  try {
    const ends = new Uint32Array(count + 1);
    let at = fstatSync(fd).size - ends.byteLength;
    readSync(fd, ends, 0, ends.byteLength, at);
    if (ends[count] !== MARK) {
      throw new Error("The executable's end is not its own: it was cut, or something was appended. Copy it again.");
    }
    const parts = Array.from(ends.subarray(0, count), (length) => Buffer.allocUnsafeSlow(length));
    at -= parts.reduce((sum, { length }) => sum + length, 0);
    for (const part of parts) at += readSync(fd, part, 0, part.length, at);
    return parts;
  } finally {
    closeSync(fd);
  }
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

exports.run = (script, file) => {
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, file, dirname(file));
};

if (isSea()) {
  const { execPath } = process;
  // Workers are started from this process's own image: the file may have been replaced by another build since, whose
  // workers would not know this one's messages.
  if (process.platform === "linux") process.execPath = `/proc/${process.pid}/exe`;
  const [program, cache] = ownParts(execPath, 2);
  exports.run(exports.scriptOf(program.latin1Slice(), cache), execPath);
}
