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

/** What is appended to a file: the parts, then how many bytes each has, as this machine writes 32 bits. */
exports.appended = (parts) => {
  const lengths = Uint32Array.from(parts, ({ length }) => length);
  return Buffer.concat([...parts, Buffer.from(lengths.buffer)]);
};

/**
 * Reads so many parts. Not as an asset of Node's, which is a piece of the program's image: what is read of that stays resident
 * for as long as the process lasts.
 */
function partsOf(file, count) {
  const fd = openSync(file, "r");
  try {
    const lengths = new Uint32Array(count);
    let at = fstatSync(fd).size - lengths.byteLength;
    readSync(fd, lengths, 0, lengths.byteLength, at);
    const parts = Array.from(lengths, (length) => Buffer.allocUnsafeSlow(length));
    at -= parts.reduce((sum, { length }) => sum + length, 0);
    for (const part of parts) at += readSync(fd, part, 0, part.length, at);
    return parts;
  } finally {
    closeSync(fd);
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
  const [program, cache] = partsOf(process.execPath, 2);
  exports.run(exports.scriptOf(program.latin1Slice(), cache), execPath);
}
