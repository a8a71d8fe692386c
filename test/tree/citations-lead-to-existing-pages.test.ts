/**
 * Everything that a comment or a document cites must exist: paths, and the numbers of rows, invariants, rules and
 * promises. A wrong citation is worse than none, because readers assume that the matter has been considered.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";

const read = (file: string): string => readFileSync(file, "utf8");
const FILES = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { encoding: "utf8" })
  .split("\n")
  .filter((file) => file !== "" && file !== "package-lock.json" && !/\.(?:png|svg)$/.test(file) && existsSync(file));
/** This file contains wrong citations on purpose. */
const SELF = "test/tree/citations-lead-to-existing-pages.test.ts";
const CODE = FILES.filter((file) => /\.(?:ts|lua|sh|mjs)$/.test(file) && file !== SELF);
const DOCUMENTS = FILES.filter((file) => file.endsWith(".md"));

type Kind = "row" | "invariant" | "rule" | "promise";

/** The page of each kind of number, and the numbers that it contains. */
const PAGES: Readonly<Record<Kind, { readonly page: string; readonly numbers: ReadonlySet<string> }>> = {
  row: pageOf("docs/failure-model.md", /^\| ([A-H]?\d+) \|/gm),
  invariant: pageOf("docs/failure-model.md", /^(\d+)\. \*\*/gm),
  rule: pageOf("docs/translation-rules.md", /^(\d+)\. \*\*/gm),
  promise: pageOf("ARCHITECTURE.md", /^\| (\d+)\. /gm),
};
const KINDS = Object.keys(PAGES) as Kind[];
/** Another page with numbers of the same name. A citation of it names the page directly after the number. */
const OTHER_RULES = pageOf("docs/usage-forms.md", /^(\d+)\. \*\*/gm);

function pageOf(page: string, number: RegExp) {
  return { page, numbers: new Set([...read(page).matchAll(number)].map((match) => match[1] as string)) };
}

interface Citation {
  readonly kind: Kind;
  readonly number: string;
}

/** Numbers as text cites them: "row B5", "rows 53 to 55, D5 and D7", "rules 30 and 31". */
const CITED = /\b(row|invariant|rule|promise)s? ((?:[A-Z]?\d+(?:, and |, | and | or | to )?)+)(?! (?:in|at|per)\b)/gi;
/** The same for titles of tests, which may begin with the bare number of a row: "C11: …", "61, 62: …". */
const TITLED = /\btest\(\s*(?:[\w.]+ \? )?["'`]((?:[A-H]?\d{1,2}(?:, )?)+): /g;

/** All numbers that a text cites, including those within a span. */
function citedIn(text: string): Citation[] {
  const flat = text.replace(/\n\s*(?:\*|\/\/|--)(?!\/) ?/g, " ");
  const found: Citation[] = [];
  for (const { 1: word = "", 2: list = "", index, 0: whole } of flat.matchAll(CITED)) {
    const kind = word.toLowerCase() as Kind;
    const beside = flat.slice(Math.max(0, index - 24), index + whole.length + 24);
    if (kind === "rule" && beside.includes(OTHER_RULES.page)) {
      for (const number of numbersOf(list)) assert.ok(OTHER_RULES.numbers.has(number), `${OTHER_RULES.page} ${number}`);
    } else {
      found.push(...numbersOf(list).map((number) => ({ kind, number })));
    }
  }
  for (const [, list = ""] of flat.matchAll(TITLED)) {
    found.push(...numbersOf(list).map((number) => ({ kind: "row" as const, number })));
  }
  return found;
}

function numbersOf(list: string): string[] {
  const single = list.match(/[A-Z]?\d+/g) ?? [];
  const spans = [...list.matchAll(/([A-Z]?)(\d+) to [A-Z]?(\d+)/g)].flatMap(([, letter, from, to]) =>
    Array.from({ length: Math.max(0, Number(to) - Number(from) + 1) }, (_, at) => `${letter}${Number(from) + at}`),
  );
  return [...single, ...spans];
}

/** What is wrong with the citations of a text, one sentence each. */
function wrongNumbers(text: string): string[] {
  const wrong = citedIn(text).filter(({ kind, number }) => !PAGES[kind].numbers.has(number));
  return [...new Set(wrong.map(({ kind, number }) => `${PAGES[kind].page} has no ${kind} ${number}`))];
}

/** The kinds of numbers that a source file cites without naming their page. */
function unnamedPages(text: string): string[] {
  const kinds = new Set(citedIn(text).map(({ kind }) => kind));
  return KINDS.filter((kind) => kinds.has(kind) && !text.includes(PAGES[kind].page)).map(
    (kind) => `cites a ${kind} and never names ${PAGES[kind].page}`,
  );
}

/** Paths of the repository in a text, as far as they differ from examples. */
const PATH =
  /(?<![\w./@$:-])(?:src|test|bench|docs|deploy|grafana)\/[\w./-]*\w\.(?:ts|md|json|lua|yaml|yml|sh|conf)\b/g;

function missingPaths(text: string): string[] {
  return [...new Set(text.match(PATH) ?? [])].filter((path) => !existsSync(path)).map((path) => `there is no ${path}`);
}

/** Source files that a comment names by the end of their path: `relay.ts`, `accept/key.ts`. */
const TAIL = /(?<![\w./@$:*-])(?:[\w-]+\/)*[\w-]+\.(?:ts|lua)\b/g;

function missingTails(text: string): string[] {
  const isThere = (tail: string): boolean => FILES.some((file) => file === tail || file.endsWith(`/${tail}`));
  return [...new Set(text.match(TAIL) ?? [])].filter((tail) => !isThere(tail)).map((tail) => `there is no ${tail}`);
}

/** The comments only, because a string may name a file that a test creates. */
function commentsOf(file: string): string {
  return read(file)
    .split("\n")
    .map((line) => /^\s*(?:\/\*\*?|\*|\/\/|--|#).*|\/\/ .*/.exec(line)?.[0] ?? "")
    .join("\n");
}

test("every row, invariant, rule and promise that is cited exists in its page", () => {
  const wrong = [...CODE, ...DOCUMENTS].flatMap((file) => wrongNumbers(read(file)).map((what) => `${file}: ${what}`));
  assert.deepEqual(wrong, []);
});

test("every file of src that cites a number names its page", () => {
  const files = CODE.filter((file) => file.startsWith("src/"));
  assert.deepEqual(
    files.flatMap((file) => unnamedPages(read(file)).map((what) => `${file} ${what}`)),
    [],
  );
});

test("every path that a comment or a document names exists", () => {
  const inCode = CODE.flatMap((file) => {
    const comments = commentsOf(file);
    // Scripts of released versions are not changed.
    const tails = file.includes("/previous/") ? [] : missingTails(comments);
    return [...missingPaths(comments), ...tails].map((what) => `${file}: ${what}`);
  });
  const inDocuments = DOCUMENTS.filter((file) => file !== "CHANGELOG.md").flatMap((file) =>
    missingPaths(read(file)).map((what) => `${file}: ${what}`),
  );
  assert.deepEqual([...inCode, ...inDocuments], []);
});

/**
 * Papers that are not in the repository, so that readers could not open them. Written without their extension, so that
 * this file does not name them.
 */
const OUTSIDE = ["DESIGN", "protocols", "reliability", "clients", "lessons", "spec", "STYLE"].map(
  (name) => `${name}.md`,
);

/** The papers outside the repository that a file names. A page of the same name within reach of the file is not one. */
function outsideNames(file: string, text: string): string[] {
  return OUTSIDE.filter((name) => text.includes(name))
    .filter((name) =>
      [...text.matchAll(new RegExp(`[\\w./-]*(?<![\\w-])${name.replace(".", "\\.")}`, "g"))].some(([path]) => {
        const near = [path, join(dirname(file), path)];
        return !near.some((one) => globSync(one).length > 0);
      }),
    )
    .map((name) => `names ${name}`);
}

test("no file names a paper that is not in the repository", () => {
  const wrong = FILES.flatMap((file) => outsideNames(file, read(file)).map((what) => `${file} ${what}`));
  assert.deepEqual(wrong, []);
});

test("no comment cites by a sign that no page explains", () => {
  const signs =
    /\b(?:[CMR]{2}\.[qrs]\d|reliability \d|reliability (?:row|section)|lessons? [A-Z]?\d|rulings? \d|DESIGN section)/i;
  const wrong = CODE.filter((file) => signs.test(commentsOf(file)));
  assert.deepEqual(wrong, []);
});

test("wrong citations are found", () => {
  assert.deepEqual(wrongNumbers("// Row B5 and rows C1 to C3, invariant 4, rule 12, promise 15."), []);
  assert.deepEqual(wrongNumbers("/** As rows B12 to B14 have it. */"), ["docs/failure-model.md has no row B14"]);
  assert.deepEqual(wrongNumbers(" * cut at any byte (rows 83\n * and 85)."), ["docs/failure-model.md has no row 85"]);
  assert.deepEqual(wrongNumbers("// invariant 99"), ["docs/failure-model.md has no invariant 99"]);
  assert.deepEqual(wrongNumbers("// rules 1 and 999"), ["docs/translation-rules.md has no rule 999"]);
  assert.deepEqual(wrongNumbers("// Promise 16"), ["ARCHITECTURE.md has no promise 16"]);
  const [title, good] = ["C99", "C9"].map((row) => `test("${row}: two lengths", () => {});`) as [string, string];
  assert.deepEqual([wrongNumbers(title), wrongNumbers(good)], [["docs/failure-model.md has no row C99"], []]);
  assert.deepEqual(unnamedPages("// row B5"), ["cites a row and never names docs/failure-model.md"]);
  assert.deepEqual(unnamedPages("// docs/failure-model.md row B5, invariant 4"), []);
  assert.deepEqual(missingPaths(`see docs/${"nowhere"}.md and docs/errors.md`), [`there is no docs/${"nowhere"}.md`]);
  assert.deepEqual(missingTails("accept/key.ts is there, a `nowhere/key.ts` is not"), ["there is no nowhere/key.ts"]);
  const [outside, page] = [`lessons${".md"}`, `clients${".md"}`] as const;
  assert.deepEqual(outsideNames("src/main.ts", `as ${outside} says, ${page} too`), [
    `names ${page}`,
    `names ${outside}`,
  ]);
  assert.deepEqual(outsideNames("docs/errors.md", `[settings](${page}), docs/${page}`), []);
});
