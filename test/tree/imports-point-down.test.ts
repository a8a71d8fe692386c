/**
 * The rule of the source tree (ARCHITECTURE.md, "Source tree"): stages never import each other, and imports point down.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import test from "node:test";

const FILES = globSync("src/**/*.ts").sort();

/** The base folders of ARCHITECTURE.md, and what each of its folders may import besides itself. */
const GROUND = { wire: [], values: ["wire"], telemetry: ["values"] };
/** The stages. They may import the base folders and the store, but never each other. */
const STAGES = {
  accept: ["telemetry", "values", "wire"],
  admit: ["store", "telemetry", "values"],
  convert: ["values", "wire"],
  dispatch: ["telemetry", "values", "wire"],
  settle: ["store", "telemetry", "values"],
};
/**
 * What each folder may import besides itself. Only the files directly in src, which build the program, may import
 * everything.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  ...GROUND,
  ...STAGES,
  store: ["telemetry", "values"],
  config: ["values"],
  simulator: ["values", "wire"],
  cli: ["convert", "store", "values"],
  console: ["settle", "store", "telemetry", "values", "wire"],
  notices: ["store", "telemetry", "values"],
  overload: ["accept", "settle", "telemetry", "values"],
  request: [...Object.keys(STAGES), "overload", "store", "telemetry", "values"],
  endpoints: [...Object.keys(STAGES), "console", "request", "store", "telemetry", "values", "wire"],
  workers: ["accept", "config", "console", "telemetry", "values"],
};

/**
 * The files directly in src: the program, its assembled parts, the demo that runs without a configuration, and a
 * worker's program.
 */
const LOOSE = ["books", "demo", "gateway", "main", "pipeline", "worker"].map((name) => `src/${name}.ts`);

/** What others may import of a folder that consists of stages. The rest is private. */
const PUBLIC: Readonly<Record<string, readonly string[]>> = {
  request: [
    "context.ts",
    "conversion.ts",
    "record.ts",
    "references.ts",
    "refuse.ts",
    "run.ts",
    "serve.ts",
    "stored/found-reply.ts",
  ],
  overload: ["overload.ts"],
  console: [
    "audit/audit.ts",
    "answers/present.ts",
    "owner/owner.ts",
    "reloads.ts",
    "routes/explain.ts",
    "routes/upstreams.ts",
  ],
  workers: ["workers.ts"],
};

/** Folders without I/O, clock or randomness, which get these as arguments. */
const PURE = ["convert", "values", "wire"];
const PURE_BUILTINS = new Set([
  "node:assert/strict",
  "node:crypto",
  "node:net",
  "node:util",
  "node:zlib",
  "node:buffer",
]);
const IMPURE_WORDS =
  /\b(Date\.now|new Date\(\)|performance\.|Math\.random|setTimeout|setInterval|setImmediate|process\.|fetch\(|randomBytes|randomUUID)/;
/** The only file that reads the machine's clock. */
const CLOCK = "src/values/time.ts";

/**
 * The files that may import each package: one file each, except typebox with one per schema, and prom-client with one
 * for a process and one for several.
 */
const PACKAGE_FILES: Readonly<Record<string, readonly string[]>> = {
  undici: ["bench/bare-proxy.ts", "src/dispatch/upstream/upstream.ts"],
  ioredis: ["src/store/redis/connection/connect.ts"],
  fastify: ["src/console/app.ts"],
  "@fastify/cookie": ["src/console/owner/owner-app.ts"],
  "@simplewebauthn/server": ["src/console/sign-in/passkeys.ts"],
  "openid-client": ["src/console/sign-in/oidc.ts"],
  preact: ["src/console/pages/parts/view.ts"],
  htm: ["src/console/pages/parts/view.ts"],
  uplot: ["src/console/pages/parts/chart.ts"],
  "@fastify/ajv-compiler": ["src/console/input/validation.ts"],
  "@fastify/swagger": ["src/console/openapi.ts"],
  commander: ["src/cli/command-line.ts"],
  "csv-parse": ["src/cli/invoice/invoice.ts"],
  yaml: ["src/config/document.ts"],
  pino: ["src/telemetry/log.ts"],
  "pino-pretty": ["src/telemetry/lines-for-people.ts"],
  "prom-client": ["src/telemetry/metrics.ts", "src/telemetry/summed-metrics.ts"],
  "@opentelemetry/api": ["src/telemetry/otlp.ts"],
  "@opentelemetry/exporter-trace-otlp-proto": ["src/telemetry/otlp.ts"],
  "@opentelemetry/resources": ["src/telemetry/otlp.ts"],
  "@opentelemetry/sdk-trace": ["src/telemetry/otlp.ts"],
  "lru-cache": ["src/values/collections/recent.ts"],
  "fastest-levenshtein": ["src/values/words/nearest.ts"],
  tokenx: ["src/convert/count.ts"],
  typebox: ["src/config/schema/words.ts", "src/console/vocabulary.ts"],
};

interface Import {
  readonly from: string;
  readonly to: string;
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  const found = text.matchAll(/^(?:import|export)[^;]*?from "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm);
  return [...found].map((match) => ({ from: file, to: (match[1] ?? match[2] ?? match[3]) as string }));
}

const IMPORTS = FILES.flatMap(importsOf);
const topFolder = (file: string): string => (file.split("/").length > 2 ? (file.split("/")[1] as string) : "(top)");
const target = ({ from, to }: Import): string => relative(".", join(dirname(from), to));

test("there are files and imports to check", () => {
  assert.ok(FILES.length > 50);
  assert.ok(IMPORTS.length > 200);
});

test("the files directly in src are known, and no folder imports them", () => {
  assert.deepEqual(
    FILES.filter((file) => topFolder(file) === "(top)"),
    LOOSE,
  );
  const importers = IMPORTS.filter(({ to }) => to.startsWith(".")).filter((one) => LOOSE.includes(target(one)));
  const wrong = importers.filter(({ from }) => topFolder(from) !== "(top)").map(({ from, to }) => `${from} -> ${to}`);
  assert.deepEqual(wrong, []);
});

test("folders import only what is below them, and only the public files of a folder of stages", () => {
  const wrong: string[] = [];
  for (const one of IMPORTS) {
    if (!one.to.startsWith(".")) continue;
    const here = topFolder(one.from);
    const there = topFolder(target(one));
    if (here === there || here === "(top)" || target(one) === "package.json") continue;
    const isPublic = PUBLIC[there]?.includes(target(one).split("/").slice(2).join("/")) ?? true;
    if (!MAY_IMPORT[here]?.includes(there) || !isPublic) wrong.push(`${one.from} -> ${one.to}`);
  }
  assert.deepEqual(wrong, []);
});

test("every folder has an import rule", () => {
  const folders = new Set(FILES.map(topFolder).filter((name) => name !== "(top)"));
  assert.deepEqual([...folders].sort(), Object.keys(MAY_IMPORT).sort());
});

test("no file imports itself through other files", () => {
  const graph = new Map(
    FILES.map((file) => [
      file,
      importsOf(file)
        .filter((one) => one.to.startsWith("."))
        .map(target),
    ]),
  );
  const state = new Map<string, "open" | "done">();
  const cycles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (state.get(file) === "done") return;
    if (state.get(file) === "open") {
      cycles.push([...path.slice(path.indexOf(file)), file].join(" -> "));
      return;
    }
    state.set(file, "open");
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    state.set(file, "done");
  };
  for (const file of FILES) visit(file, []);
  assert.deepEqual(cycles, []);
});

test("each package is imported only by its own files, and package.json has no unused dependency", () => {
  const wrong = IMPORTS.filter(({ from, to }) => {
    if (to.startsWith(".") || to.startsWith("node:")) return false;
    const name = to.startsWith("@") ? to.split("/").slice(0, 2).join("/") : (to.split("/")[0] as string);
    return !PACKAGE_FILES[name]?.includes(from);
  });
  assert.deepEqual(wrong, []);
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
  assert.deepEqual(Object.keys(dependencies).sort(), Object.keys(PACKAGE_FILES).sort());
});

test("pure folders use no clock, randomness, network or disk", () => {
  const wrong: string[] = [];
  for (const file of FILES.filter((name) => PURE.includes(topFolder(name)) && name !== CLOCK)) {
    for (const { to } of importsOf(file))
      if (to.startsWith("node:") && !PURE_BUILTINS.has(to)) wrong.push(`${file}: ${to}`);
    const code = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
    const word = IMPURE_WORDS.exec(code)?.[1];
    if (word) wrong.push(`${file}: ${word}`);
  }
  assert.deepEqual(wrong, []);
});

test("the environment is read in src/config/config.ts only", () => {
  // Pages run in browsers, which have no environment. They show example code of clients that read theirs.
  const programs = FILES.filter((file) => !file.startsWith("src/console/pages/"));
  const readers = programs.filter((file) => readFileSync(file, "utf8").includes("process.env"));
  assert.deepEqual(readers, ["src/config/config.ts"]);
});

test("no decision depends on a vendor's model name", () => {
  const code = FILES.filter((file) => topFolder(file) !== "simulator");
  const found = code.filter((file) =>
    /startsWith\("(gpt|claude|o[0-9]|gemini|deepseek)/.test(readFileSync(file, "utf8")),
  );
  assert.deepEqual(found, []);
});

test("a folder has at most twenty files, and more are divided into subfolders", () => {
  // The maximum length of functions is in biome.json.
  const FILES_MAX = 20;
  const counts = new Map<string, number>();
  for (const file of FILES) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  assert.deepEqual(
    [...counts].filter(([, count]) => count > FILES_MAX),
    [],
  );
});
