/** These tests compare the documents with the files, because text about files becomes outdated within weeks. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import test from "node:test";
import { DEFAULTS } from "../../src/config/defaults.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { membersDocument } from "./members-file.ts";
import { settingsDocument } from "./settings-file.ts";

const read = (file: string): string => readFileSync(file, "utf8");
const DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md")].sort();

test("every file that a document names exists", () => {
  const missing: string[] = [];
  for (const document of DOCUMENTS) {
    const named = read(document).matchAll(/`((?:src|test|bench|docs|deploy|grafana|\.ci)\/[\w./*<>-]*)`/g);
    for (const [, path] of named) {
      const pattern = (path as string).replace(/<[^>]+>/g, "*");
      const found = pattern.includes("*") ? globSync(pattern).length > 0 : existsSync(pattern);
      if (!found) missing.push(`${document}: ${path}`);
    }
  }
  assert.deepEqual(missing, []);
});

test("every link between documents leads to an existing target", () => {
  const broken: string[] = [];
  for (const document of DOCUMENTS) {
    const folder = document.includes("/") ? document.slice(0, document.lastIndexOf("/") + 1) : "";
    for (const [, link] of read(document).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
      if (!existsSync(folder + link)) broken.push(`${document}: ${link}`);
    }
  }
  assert.deepEqual(broken, []);
});

test("docs/README.md lists every document below docs/, and each decision by its heading", () => {
  const linked = [...read("docs/README.md").matchAll(/^- \[([^\]]+)\]\(([^)#]+)\)/gm)];
  const documents = DOCUMENTS.filter((file) => file.startsWith("docs/") && file !== "docs/README.md");
  assert.deepEqual(linked.map(([, , path]) => `docs/${path}`).sort(), documents);
  const misnamed: string[] = [];
  for (const [, name, path] of linked.filter(([, , target]) => target?.startsWith("decisions/"))) {
    const heading = /^# (.+?)(?: \(\d{4}-\d\d-\d\d\))?$/m.exec(read(`docs/${path}`))?.[1];
    if (name !== heading) misnamed.push(`${path}: ${name}, not ${heading}`);
  }
  assert.deepEqual(misnamed, []);
});

test("every explanation of the stream heartbeat says that it begins after the first event, for which first_byte is the timeout", () => {
  const heartbeat = `every ${DEFAULTS.heartbeatMs / 1_000} s`;
  const firstByte = `\`first_byte\` (${DEFAULTS.timeoutFirstByteMs / 1_000} s`;
  const figures = { "docs/fronts.md": [heartbeat, firstByte], "deploy/nginx.conf": [heartbeat, firstByte] };
  const places = { ...figures, "tollgate.example.yaml": ["first_byte"], "tollgate.schema.json": ["first_byte"] };
  for (const [file, words] of Object.entries(places)) {
    const [said = ""] = /(?:have a heartbeat|has a heartbeat|Silence on a stream).*\n.*/.exec(read(file)) ?? [];
    for (const word of ["first event", ...words]) assert.ok(said.includes(word), `${file}: ${word}`);
  }
});

test("the pictures of the README are those of npm run showcase, and small enough for a page", () => {
  const showcase = read("test/e2e/ops/observability/showcase.ts");
  const drawn = [...showcase.matchAll(/^ {2}(\w+): \{\n {4}size:/gm)].map(([, name]) => `docs/pictures/${name}.png`);
  assert.ok(drawn.length > 1);
  assert.deepEqual(globSync("docs/pictures/*").sort(), drawn.sort());
  const shown = [...read("README.md").matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, path]) => path);
  assert.deepEqual(shown.sort(), drawn);
  for (const picture of drawn) assert.ok(statSync(picture).size < 150_000, picture);
});

test("every npm command that a document names is a script", () => {
  const scripts = new Set(Object.keys(JSON.parse(read("package.json")).scripts));
  const builtIn = new Set(["ci", "test", "start", "install"]);
  const unknown: string[] = [];
  for (const document of DOCUMENTS) {
    for (const [, run, name] of read(document).matchAll(/(?:`|^)npm (run )?(?:--silent )?([a-z][a-z:-]*)/gm)) {
      if (run ? !scripts.has(name as string) : !builtIn.has(name as string)) unknown.push(`${document}: npm ${name}`);
    }
  }
  assert.deepEqual(unknown, []);
});

test("ARCHITECTURE.md names a test for each of the fifteen promises, and each test exists", () => {
  const rows = [...read("ARCHITECTURE.md").matchAll(/^\| (\d+)\. [^|]+\| ([^|]+)\|/gm)];
  assert.deepEqual(
    rows.map((row) => Number(row[1])),
    Array.from({ length: 15 }, (_, index) => index + 1),
  );
  for (const [, number, tests] of rows) {
    const files = [...(tests as string).matchAll(/`(test\/[^`]+)`/g)].map((match) => match[1] as string);
    assert.ok(files.length > 0, `promise ${number} has no test`);
    for (const file of files) assert.ok(existsSync(file), `promise ${number}: ${file}`);
  }
});

test("ARCHITECTURE.md names every folder of src", () => {
  const text = read("ARCHITECTURE.md");
  for (const folder of globSync("src/*/")) assert.ok(text.includes(`\`${folder.replace(/\/$/, "")}/\``), folder);
});

test("docs/log.md lists exactly the events of the log", () => {
  const documented = [...read("docs/log.md").matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, name]) => name as string);
  // An event of the log is the first of a line's facts. Events of streams have types, not names like these.
  const folders = "src/{*,{console,notices,settle,workers,request,store,overload,endpoints,telemetry}/**/*}.ts";
  const sources = globSync(folders).map(read).join("\n");
  const written = sources.matchAll(/\bevent: "([a-z_]+)"|undefined, "([a-z_]+)"\)/g);
  const names = [...new Set([...written].map(([, named, alarmed]) => (named ?? alarmed) as string))];
  assert.deepEqual(documented.sort(), names.sort());
});

test("docs/metrics.md lists exactly the metrics with their labels", async () => {
  const documented = [...read("docs/metrics.md").matchAll(/^\| `(tollgate_[a-z0-9_]+)(?:\{([^}]*)\})?` \|/gm)]
    .map((match) => `${match[1]}{${match[2] ?? ""}}`)
    .sort();
  const made = createMetrics();
  const members = Object.values(made as unknown as Record<string, { name: string; labelNames?: string[] }>);
  const metrics = members.filter(({ labelNames }) => labelNames !== undefined);
  const exposed = metrics.map(({ name, labelNames = [] }) => `${name}{${labelNames.join(",")}}`);
  assert.deepEqual(documented, exposed.sort());
  // The page also contains only metrics whose names are in the code.
  const { body } = await made.page();
  const names = [...body.matchAll(/^# TYPE (tollgate_[a-z0-9_]+) /gm)].map((match) => match[1]);
  assert.deepEqual(names.sort(), metrics.map(({ name }) => name).sort());
});

test("docs/members.md has the tables of the code (npm run members writes them)", () => {
  assert.equal(read("docs/members.md"), membersDocument());
});

test("docs/configuration.md describes every setting of the schema (npm run settings writes the tables)", () => {
  assert.equal(read("docs/configuration.md"), settingsDocument());
  const { properties } = JSON.parse(read("tollgate.schema.json"));
  for (const name of Object.keys(properties))
    assert.ok(read("docs/configuration.md").includes(`\n| \`${name}\` |`), name);
});

test("no file contains a path of one machine or a registry's host", () => {
  const files = execFileSync("git", ["ls-files"], { encoding: "utf8" }).split("\n").filter(Boolean);
  const wrong: string[] = [];
  for (const file of files) {
    if (!existsSync(file) || file === "test/tree/documents-agree-with-the-code.test.ts") continue;
    const text = read(file);
    if (/\/(?:work|root|home)\/[a-z.]/.test(text)) wrong.push(`${file}: a path of one machine`);
    if (/registry\.npmjs|pypi\.org|deb\.debian/.test(text)) wrong.push(`${file}: a registry's host`);
  }
  assert.deepEqual(wrong, []);
});

test("80: the lockfile pins every version, and no dependency runs install scripts", () => {
  const lock = JSON.parse(read("package-lock.json"));
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read("package.json"));
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
    assert.match(String(version), /^\d+\.\d+\.\d+$/, `${name} is not pinned`);
  }
  const scripted = Object.entries(lock.packages as Record<string, { hasInstallScript?: boolean }>)
    .filter(([, entry]) => entry.hasInstallScript)
    .map(([name]) => name);
  assert.deepEqual(scripted, []);
  assert.match(read(".npmrc"), /^ignore-scripts=true$/m);
});
