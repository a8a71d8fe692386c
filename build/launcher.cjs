/**
 * What the executable runs first: it gives V8 the program and what V8 has compiled of it before, both kept in the
 * executable (build/executable.ts). Node's own code cache for single executables is made without running the program, and so
 * has hardly a function in it.
 */
const { dirname } = require("node:path");
const { getRawAsset, isSea } = require("node:sea");
const { Script } = require("node:vm");
const { zstdDecompressSync } = require("node:zlib");

/** What is unpacked comes in one piece: thousands would be put together once more, and leave malloc in pieces. */
const WHOLE = { chunkSize: 16 * 1024 * 1024 };

/** A program as a function of what a CommonJS module is given. */
exports.wrapped = (code) => `(function (exports, require, module, __filename, __dirname) {${code}\n})`;

/** @param cachedData what `createCachedData` of the same text gave, under the same V8 and the same flags of it. */
exports.scriptOf = (text, cachedData) => new Script(text, { filename: "tollgate.cjs", cachedData });

exports.run = (script, file) => {
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, file, dirname(file));
};

if (isSea()) {
  const { execPath } = process;
  // Workers are started from this process's own image: the file may have been replaced by another build since, whose
  // workers would not know this one's messages.
  if (process.platform === "linux") process.execPath = `/proc/${process.pid}/exe`;
  const text = zstdDecompressSync(getRawAsset("program"), WHOLE).latin1Slice();
  exports.run(exports.scriptOf(text, zstdDecompressSync(getRawAsset("cache"), WHOLE)), execPath);
}
