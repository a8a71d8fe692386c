/**
 * The files that a browser loads: the modules of `pages/` with their types stripped, as Node strips those of the other
 * sources, and the few packages that they import. Built at the first request of a browser, then cached.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { BUNDLED_FILES } from "../values/program/files.ts";

/** One file as it is sent. */
interface PageFile {
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

/** All files of the pages. */
interface PageFiles {
  /** Changes when any file changes. It is part of their URLs, so that browsers may cache them forever. */
  readonly digest: string;
  /** By path below the assets folder. */
  readonly files: ReadonlyMap<string, PageFile>;
}

/** Packages by the name that modules import, and the path of their module (build/bundle.ts reads this too). */
export const PAGE_PACKAGES: Readonly<Record<string, string>> = {
  preact: "preact/dist/preact.mjs",
  "preact/hooks": "preact/hooks/dist/hooks.mjs",
  htm: "htm/dist/htm.module.js",
  uplot: "uplot/dist/uPlot.iife.min.js",
  "uplot.css": "uplot/dist/uPlot.min.css",
};

/** Sources below `src/`. */
const PAGE_SOURCES = "console/pages/**/*.{ts,css,svg}";

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ts: "text/javascript; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  mjs: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

const DIGEST_CHARS = 12;

let made: PageFiles | undefined;

/** The files; the same result for every call. */
export function pageFiles(): PageFiles {
  made ??= make(BUNDLED_FILES ? bundled(BUNDLED_FILES) : checkedOut());
  return made;
}

/** Texts by path, from a checkout, without their types. */
export function checkedOut(): ReadonlyMap<string, string> {
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const modules = fileURLToPath(new URL("../../node_modules/", import.meta.url));
  const sources = globSync(PAGE_SOURCES, { cwd }).sort();
  return new Map([
    ...sources.map(
      (path) => [path.slice(BUNDLED_PREFIX.length), plain(path, readFileSync(cwd + path, "utf8"))] as const,
    ),
    ...Object.values(PAGE_PACKAGES).map((path) => {
      const text = readFileSync(modules + path, "utf8");
      return [`packages/${path}`, path.endsWith(".iife.min.js") ? asModule(text) : text] as const;
    }),
  ]);
}

/**
 * Turns a script that defines one variable into a module that exports it. uPlot's own modules are not minified and are
 * 20 KB larger.
 */
function asModule(script: string): string {
  const name = /^var (\w+)=/m.exec(script)?.[1];
  assert.ok(name, "a script of a package makes no variable");
  return `${script}\nexport default ${name};\n`;
}

function plain(path: string, text: string): string {
  if (!path.endsWith(".ts")) return text;
  // Node warns once that the function is experimental. It does not warn when it strips the other sources in the same
  // way.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return withoutComments(stripTypeScriptTypes(text));
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Removes lines that are only a comment. So no line of a template may begin like a comment; none needs to. */
function withoutComments(code: string): string {
  return code.replace(/^[ \t]*(?:\/\*\*[\s\S]*?\*\/|\/\/.*)[ \t]*\n/gm, "");
}

/** The prefix of these files in a bundle. */
export const BUNDLED_PREFIX = "console/pages/";

function bundled(files: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const own = Object.entries(files).filter(([path]) => path.startsWith(BUNDLED_PREFIX));
  return new Map(own.map(([path, text]) => [path.slice(BUNDLED_PREFIX.length), text]));
}

function make(texts: ReadonlyMap<string, string>): PageFiles {
  const files = new Map([...texts].map(([path, text]) => [path, fileOf(path, text)]));
  const hash = createHash("sha256");
  for (const [path, { bytes }] of files) hash.update(path).update(bytes);
  return { digest: hash.digest("hex").slice(0, DIGEST_CHARS), files };
}

function fileOf(path: string, text: string): PageFile {
  const ending = path.slice(path.lastIndexOf(".") + 1);
  const bytes = Buffer.from(/^(?:ts|m?js)$/.test(ending) ? linked(path, text) : text);
  return {
    contentType: CONTENT_TYPES[ending] ?? "application/octet-stream",
    bytes,
    gzipped: gzipSync(bytes, { level: 9 }),
  };
}

/** The module with package names replaced by relative paths, because a browser cannot resolve packages. */
function linked(path: string, code: string): string {
  const up = "../".repeat(path.split("/").length - 1) || "./";
  return code.replace(/(\bfrom\s*|\bimport\s*)"([a-z][a-z./-]*)"/g, (whole, word: string, name: string) => {
    const file = PAGE_PACKAGES[name];
    return file === undefined ? whole : `${word}"${up}packages/${file}"`;
  });
}
