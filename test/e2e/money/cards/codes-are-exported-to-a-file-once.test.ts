// Codes are exported once, as a table or a page: only to the named file, private, and never over an existing file.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "csv-parse/sync";
import { readCode } from "../../../../src/values/code.ts";
import { embeddedBench } from "../../../unit/store/benches.ts";
import { shopOn } from "./rig.ts";

async function open(t: TestContext) {
  const bench = await embeddedBench();
  const dir = mkdtempSync(join(tmpdir(), "tollgate-codes-"));
  t.after(async () => {
    await bench.close();
    rmSync(dir, { recursive: true });
  });
  const shop = await shopOn(t, bench);
  shop.setTime(Date.UTC(2027, 3, 10));
  return { shop, store: bench.store, place: (name: string) => join(dir, name) };
}

const LABEL = `=1+1 <b>"Fair" & 'more'</b>`;
const wanted = (...more: string[]) => {
  const words = "code create --card day --count 3 --redeem-by 2027-05-01 --label".split(" ");
  return [...words, LABEL, ...more];
};

test("a table describes each code; a value that a spreadsheet could take for a formula is written as text", async (t) => {
  const { shop, store } = await open(t);
  const { out, err } = await shop.tollgate(...wanted("--format", "csv"));
  assert.match(err, /The batch is batch_\w{16}\. The codes are shown only this once/);
  const rows = parse(out, { columns: true }) as Record<string, string>[];
  assert.equal(rows.length, 3);
  for (const row of rows) {
    assert.equal(readCode(row.code ?? "")?.length, 64);
    const code = await store.getCode(row.id ?? "");
    assert.deepEqual([row.card, row.redeem_by, row.batch_id], ["day", "2027-05-01", code?.batch]);
    assert.equal(row.label, `'${LABEL}`);
  }
});

test("a file can be written for a single code", async (t) => {
  const { shop, place } = await open(t);
  const ran = await shop.tollgate("code", "create", "--card", "day", "--count", "1", "--output", place("one.txt"));
  assert.match(ran.out, /^Wrote 1 code to .*one\.txt\.\n$/);
});

test("a page is one file without scripts, and user input in it is escaped", async (t) => {
  const { shop, place } = await open(t);
  const file = place("codes.html");
  const ran = await shop.tollgate(...wanted("--format", "html", "--output", file));
  assert.match(ran.out, /^Wrote 3 codes of the batch batch_\w{16} to .*codes\.html\.\n$/);
  assert.match(ran.err, /Only this file has the codes/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const page = readFileSync(file, "utf8");
  const codes = [...page.matchAll(/<p class="code">([^<]*)<\/p>/g)].map(([, code]) => code ?? "");
  assert.equal(codes.length, 3);
  for (const code of codes) {
    assert.equal(readCode(code)?.length, 64);
    assert.ok(!`${ran.out}${ran.err}`.includes(code), "the codes are in the file only");
  }
  assert.ok(page.includes("=1+1 &lt;b&gt;&quot;Fair&quot; &amp; &#39;more&#39;&lt;/b&gt;"), page);
  assert.match(page, /day, 1 day, worth 5\.00 USD, redeem by 2027-05-01 \(UTC\)/);
  assert.match(page, /content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'"/);
  assert.doesNotMatch(page, /<script|<b>|\bhref=|\bsrc=|url\(|@import| on\w+=/i);
});

test("with JSON output the answer names the file and contains no code", async (t) => {
  const { shop, place } = await open(t);
  const file = place("codes.csv");
  const answer = await shop.json(...wanted("--format", "csv", "--output", file));
  assert.deepEqual([answer.file, answer.items.length, Object.keys(answer.items[0])], [file, 3, ["id"]]);
  const table = readFileSync(file, "utf8");
  for (const { id } of answer.items) assert.ok(table.includes(id));
});

test("an existing file is not overwritten and no code is created; a refused request leaves no file", async (t) => {
  const { shop, store, place } = await open(t);
  const file = place("taken");
  writeFileSync(file, "mine");
  const taken = await shop.tollgate(...wanted("--output", file));
  assert.deepEqual([taken.status, /already exists and is not changed; no code was created/.test(taken.err)], [1, true]);
  assert.equal(readFileSync(file, "utf8"), "mine");
  const nowhere = await shop.tollgate(...wanted("--output", place("none/codes.csv")));
  assert.deepEqual([nowhere.status, /cannot be written \(ENOENT\); no code was created/.test(nowhere.err)], [1, true]);
  const refused = place("refused");
  const typo = await shop.tollgate("code", "create", "--card", "dya", "--count", "1", "--output", refused);
  assert.deepEqual([typo.status, existsSync(refused)], [1, false]);
  assert.equal((await store.listCodes(undefined, 1)).items.length, 0);
  assert.equal((await shop.tollgate(...wanted("--format", "pdf"))).status, 2);
});

test("if the disk does not take the file, the codes are shown instead of lost", async (t) => {
  const { shop, store, place } = await open(t);
  const file = place("codes.csv");
  const program = fileURLToPath(new URL("../../../../src/main.ts", import.meta.url));
  // Prevents files of this process from growing.
  const limited = ["-c", 'ulimit -f 0; exec "$@"', "sh", process.execPath, program, ...wanted("--output", file)];
  const child = spawn("sh", limited, { env: { ...process.env, ...shop.env }, stdio: ["ignore", "pipe", "pipe"] });
  const [[status], out, err] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  assert.equal(status, 1, err);
  assert.match(err, /codes\.csv could not be written \(EFBIG\); keep the codes that are shown above/);
  const made = (await store.listCodes(undefined, 10)).items.map(({ id }) => id);
  const lines = out.trimEnd().split("\n");
  assert.deepEqual(lines.map((line) => line.split("  ")[1]).sort(), made);
  assert.equal(existsSync(file), false);
});
