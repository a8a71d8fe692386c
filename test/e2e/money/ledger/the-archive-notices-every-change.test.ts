/**
 * `tollgate ledger verify --archive` detects every change in a file of the archive, even if its digests were
 * recomputed, because the store has the last link of their chain. A file without digests is reported as such.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { after, afterEach, before } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { listArchive, readFaulty, writeArchive } from "../../../../src/cli/archive/files.ts";
import { CliFailure } from "../../../../src/cli/failure.ts";
import { chained, newChain } from "../../../../src/store/ledger/line-chain.ts";
import { fromPlain } from "../../../../src/store/ledger/plain-line.ts";
import type { LedgerLine } from "../../../../src/store/records.ts";
import { utcDay } from "../../../../src/values/time.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { served, tollgate } from "./rig.ts";

const DAY_MS = 86_400_000;
/** Lines in each of the two files of an account. */
const FIRST = 12;
const SECOND = 9;

let here: GatewayHere;
let alice: TestAccount;
let bob: TestAccount;
const dir = join(mkdtempSync(join(tmpdir(), "tollgate-archive-")), "files");
/** The folder as it was written. */
const good = new Map<string, Buffer>();

before(async () => {
  here = await startGatewayHere();
  [alice, bob] = [await here.account({ usd: "1" }), await here.account({ usd: "1" })];
  for (const lines of [FIRST, SECOND]) {
    for (const account of [alice, bob]) {
      await served(here, account);
      const { length } = await here.store.readLedger(account.tag, 0, 100);
      const opened = lines === FIRST ? 0 : 1;
      for (let at = length - opened; at < lines; at++) {
        const payment = { id: `pay-${lines}-${at}`, amount: 1n, kind: "topup" as const, note: 'a "note" äö \ufffd' };
        await here.store.credit(account.tag, payment);
      }
      age(account);
    }
    const ran = await tollgate(here, "ledger", "archive", "--before", utcDay(Date.now() - 5 * DAY_MS), "--to", dir);
    assert.equal(ran.status, 0, ran.err);
  }
  for (const name of readdirSync(dir)) good.set(name, readFileSync(join(dir, name)));
  assert.equal(good.size, 4);
});
after(async () => {
  await here.close();
  rmSync(join(dir, ".."), { recursive: true });
});
afterEach(() => {
  for (const name of readdirSync(dir)) rmSync(join(dir, name));
  for (const [name, bytes] of good) writeFileSync(join(dir, name), bytes);
});

/** Makes the ledger lines ten days older. */
function age({ tag }: TestAccount): void {
  assert.ok(here.settings.store.kind === "embedded");
  const db = new DatabaseSync(join(here.settings.store.dir, "tollgate.db"));
  db.prepare("UPDATE ledger SET at = at - ? WHERE tag = ? AND kind <> 'opening'").run(10 * DAY_MS, tag);
  db.close();
}

function fileOf({ tag }: TestAccount, which: "first" | "second"): string {
  const [first = "", second = ""] = [...good.keys()].filter((name) => name.startsWith(`acct_${tag}.`)).sort();
  return join(dir, which === "first" ? first : second);
}

type Text = { head: Record<string, unknown>; lines: Record<string, unknown>[] };

/** Rewrites a file after `change`; `heal` recomputes the digest in its heading. */
function rewrite(path: string, change: (text: Text) => void, { heal = false } = {}): void {
  const [head = "", ...lines] = gunzipSync(readFileSync(path)).toString().trimEnd().split("\n");
  const text: Text = { head: JSON.parse(head), lines: lines.map((line) => JSON.parse(line)) };
  change(text);
  if (heal) {
    const chain = text.head.chain as { from: number; before: string; after: string };
    const read = text.lines.map((line) => fromPlain(line)).filter((line): line is LedgerLine => line !== undefined);
    chain.after = chained({ from: chain.from, sha256: chain.before }, read).sha256;
  }
  const all = [text.head, ...text.lines].map((one) => `${JSON.stringify(one)}\n`).join("");
  writeFileSync(path, gzipSync(all));
}

/** Verifies alice and all accounts, with the files. @returns the checks that found something. */
async function checksFound(): Promise<string[]> {
  const one = await tollgate(here, "ledger", "verify", "--account", alice.name, "--archive", dir);
  const all = await tollgate(here, "--json", "ledger", "verify", "--archive", dir);
  assert.equal(all.status, one.status, one.err);
  const { items, unbalanced } = JSON.parse(all.out) as {
    unbalanced: number;
    items: { account: string; outcome: string; findings: { check: string }[] }[];
  };
  const { outcome, findings = [] } = items.find(({ account }) => account === alice.name) ?? {};
  const words = one.status === 0 ? "out of balance: 0." : "out of balance: 1.";
  assert.ok(one.out.includes(words), one.out);
  assert.deepEqual([unbalanced === 0, outcome], one.status === 0 ? [true, "balanced"] : [false, "unbalanced"]);
  return [...new Set(findings.map(({ check }) => check))].sort();
}

const MEMBERS = [
  "seq",
  "at_ms",
  "kind",
  "debit",
  "credit",
  "amount",
  "balance",
  "reference",
  "group",
  "model",
  "key",
  "memo",
];

test("an unchanged archive has no findings", async () => {
  assert.deepEqual(await checksFound(), []);
});

test("a missing folder is an error, not an empty archive", async () => {
  for (const missing of [join(dir, "none"), join(dir, "..", "fiels")]) {
    const ran = await tollgate(here, "ledger", "verify", "--archive", missing);
    assert.deepEqual([ran.status, ran.out], [1, ""]);
    assert.match(ran.err, /^There is no archive in .* yet: the folder does not exist/);
    assert.ok(ran.err.includes(` ${missing} `));
  }
});

test("a changed member of a line is detected, even with recomputed digests", async () => {
  for (const heal of [false, true]) {
    for (const member of MEMBERS) {
      for (const which of ["first", "second"] as const) {
        const path = fileOf(alice, which);
        rewrite(
          path,
          ({ lines }) => {
            const line = lines[4] as Record<string, unknown>;
            assert.ok(member in line, member);
            line[member] = typeof line[member] === "number" ? (line[member] as number) + 1 : `${line[member]}1`;
          },
          { heal },
        );
        const found = await checksFound();
        const expected = heal || member === "seq" ? "archive_chain" : "archive_file";
        assert.ok(found.includes(expected), `${member} in the ${which} file: ${found}`);
        writeFileSync(path, good.get(path.slice(dir.length + 1)) as Buffer);
      }
    }
  }
});

const DAMAGES: Readonly<Record<string, (path: string) => void>> = {
  "the last line cut": (path) => rewrite(path, ({ lines }) => void lines.pop(), { heal: true }),
  "the first line cut": (path) => rewrite(path, ({ lines }) => void lines.shift(), { heal: true }),
  "a line twice": (path) => rewrite(path, ({ lines }) => void lines.splice(3, 0, lines[3] as never), { heal: true }),
  "two swapped lines": (path) =>
    rewrite(path, ({ lines }) => void lines.splice(3, 2, lines[4] as never, lines[3] as never), { heal: true }),
  "two lines with swapped references": (path) =>
    rewrite(
      path,
      ({ lines }) => {
        const [a, b] = lines.slice(-2) as [{ reference: unknown }, { reference: unknown }];
        [a.reference, b.reference] = [b.reference, a.reference];
      },
      { heal: true },
    ),
  "a forged line with the next number": (path) =>
    rewrite(
      path,
      ({ lines, head }) => {
        const last = lines.at(-1) as { seq: number };
        lines.push({ ...last, seq: last.seq + 1 });
        head.last = last.seq + 1;
      },
      { heal: true },
    ),
  "an extra member": (path) =>
    rewrite(path, ({ lines }) => void Object.assign(lines[2] as object, { more: 1 }), { heal: true }),
  "members in another order": (path) =>
    rewrite(path, ({ lines }) => {
      lines[2] = Object.fromEntries(Object.entries(lines[2] as object).reverse());
    }),
  "another account in the heading": (path) =>
    rewrite(path, ({ head }) => void Object.assign(head, { account: "acct_0000000000" })),
  "another first line in the heading": (path) => rewrite(path, ({ head }) => void Object.assign(head, { first: 2 })),
  "another last line in the heading": (path) => rewrite(path, ({ head }) => void Object.assign(head, { last: 99 })),
  "an extra member in the heading": (path) => rewrite(path, ({ head }) => void Object.assign(head, { more: 1 })),
  "another digest in the heading": (path) =>
    rewrite(path, ({ head }) => void Object.assign(head.chain as object, { after: "0".repeat(64) })),
  "another digest before the first line": (path) =>
    rewrite(path, ({ head }) => void Object.assign(head.chain as object, { before: "0".repeat(64) }), { heal: true }),
  "another beginning of the chain": (path) =>
    rewrite(path, ({ head }) => void Object.assign(head.chain as object, { from: 2 }), { heal: true }),
  "another version": (path) => rewrite(path, ({ head }) => void Object.assign(head, { tollgate_ledger: 3 })),
  "the heading of a version without digests": (path) =>
    rewrite(path, ({ head, lines }) => {
      delete head.chain;
      head.tollgate_ledger = 1;
      (lines[4] as { reference: string }).reference = "another";
    }),
  "only the heading of a version without digests": (path) =>
    rewrite(path, ({ head }) => {
      delete head.chain;
      head.tollgate_ledger = 1;
    }),
  "zeros after the end": (path) => writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(5)])),
  "an empty gzip member after the end": (path) =>
    writeFileSync(path, Buffer.concat([readFileSync(path), gzipSync("")])),
  "an empty gzip member before the beginning": (path) =>
    writeFileSync(path, Buffer.concat([gzipSync(""), readFileSync(path)])),
  "a torn file": (path) => writeFileSync(path, readFileSync(path).subarray(0, -9)),
  "an empty file": (path) => writeFileSync(path, ""),
  "no gzip": (path) => writeFileSync(path, "text"),
  "text after the last line": (path) =>
    writeFileSync(path, gzipSync(Buffer.concat([gunzipSync(readFileSync(path)), Buffer.from("x")]))),
  "no file": (path) => rmSync(path),
};

for (const [name, damage] of Object.entries(DAMAGES)) {
  for (const which of ["first", "second"] as const) {
    test(`${name}, in the ${which} file`, async () => {
      damage(fileOf(alice, which));
      const found = await checksFound();
      assert.ok(
        found.some((check) => check.startsWith("archive_")),
        `${found}`,
      );
    });
  }
}

/** All faults of a file, including one that cannot be read at all. */
async function faultsOf(path: string): Promise<readonly string[]> {
  const file = (await listArchive(dir)).find((one) => one.path === path);
  assert.ok(file);
  return readFaulty(file).then(
    ({ faults }) => faults,
    (error: unknown) => {
      assert.ok(error instanceof CliFailure, `${error}`);
      return [error.message];
    },
  );
}

test("each byte of a file that is changed, removed or inserted is detected", async () => {
  const path = fileOf(alice, "first");
  const text = gunzipSync(readFileSync(path));
  assert.ok(text.includes("\ufffd"), "bytes that are not UTF-8 are read as this character");
  const headEnd = text.indexOf("\n");
  const unnoticed: string[] = [];
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] as number;
    const all = {
      "a lowest bit": Buffer.from(text).fill(byte ^ 1, at, at + 1),
      "a highest bit": Buffer.from(text).fill(byte ^ 0x80, at, at + 1),
      "left out": Buffer.concat([text.subarray(0, at), text.subarray(at + 1)]),
      "a blank put in": Buffer.concat([text.subarray(0, at), Buffer.from(" "), text.subarray(at)]),
    };
    // All changes in the heading; in the lines, which a digest covers uniformly, one kind of change per byte.
    const changes = Object.entries(all).filter((_, which) => at <= headEnd || which === at % 4);
    for (const [name, bytes] of changes) {
      writeFileSync(path, gzipSync(bytes, { level: 0 }));
      if ((await faultsOf(path)).length === 0) unnoticed.push(`${name} at ${at}`);
    }
  }
  // The start of the chain is not covered by this file's digest: all files and the store have to agree on it.
  const from = text.indexOf('"from":1,') + '"from":'.length;
  assert.deepEqual(unnoticed, [`a lowest bit at ${from}`]);
  writeFileSync(path, gzipSync(Buffer.from(text).fill("0", from, from + 1)));
  assert.ok((await checksFound()).includes("archive_chain"));
});

/** The header length of a gzip file without a name (RFC 1952, section 2.3). */
const HEAD_BYTES = 10;

test("each changed byte of the compressed file is detected, except those that do not affect the text", async () => {
  const path = fileOf(alice, "second");
  const packed = readFileSync(path);
  const text = gunzipSync(packed);
  // A repetition may refer to either of two places with the same bytes.
  const unpacksTheSame = (bytes: Buffer): boolean => {
    try {
      return gunzipSync(bytes).equals(text);
    } catch {
      return false;
    }
  };
  const unnoticed: number[] = [];
  for (let at = 0; at < packed.length; at++) {
    const changed = Buffer.from(packed).fill((packed[at] as number) ^ 1, at, at + 1);
    writeFileSync(path, changed);
    if ((await faultsOf(path)).length > 0) continue;
    if (at < HEAD_BYTES || !unpacksTheSame(changed)) unnoticed.push(at);
  }
  // RFC 1952, section 2.3: the time, the extra flags and the system.
  assert.deepEqual(unnoticed, [4, 5, 6, 7, 8, 9]);
  for (let length = 0; length < packed.length; length++) {
    writeFileSync(path, packed.subarray(0, length));
    assert.notDeepEqual(await faultsOf(path), [], `cut to ${length} bytes`);
  }
});

test("swapped files are detected: within one account, between two, and between two with their names", async () => {
  const swap = (a: string, b: string) => {
    const [one, two] = [readFileSync(a), readFileSync(b)];
    writeFileSync(a, two);
    writeFileSync(b, one);
  };
  swap(fileOf(alice, "first"), fileOf(alice, "second"));
  assert.ok((await checksFound()).includes("archive_file"));
  swap(fileOf(alice, "first"), fileOf(alice, "second"));
  assert.deepEqual(await checksFound(), []);

  swap(fileOf(alice, "second"), fileOf(bob, "second"));
  assert.ok((await checksFound()).includes("archive_file"));
  // The swapped files get the headings that belong to their new names.
  for (const [path, { tag }] of [
    [fileOf(alice, "second"), alice],
    [fileOf(bob, "second"), bob],
  ] as const) {
    rewrite(path, ({ head }) => void Object.assign(head, { account: `acct_${tag}` }), { heal: true });
  }
  assert.ok((await checksFound()).includes("archive_chain"));
});

test("a file whose lines are also in another file is detected", async () => {
  const path = fileOf(alice, "first");
  renameSync(path, path.replace("-000000000012", "-000000000011"));
  writeFileSync(path, good.get(path.slice(dir.length + 1)) as Buffer);
  assert.ok((await checksFound()).includes("archive_twice"));
});

test("a file with lines from the middle of another one causes no gap after that one", async () => {
  const [, ...texts] = gunzipSync(readFileSync(fileOf(alice, "first")))
    .toString()
    .trimEnd()
    .split("\n");
  const lines = texts.slice(2, 5).map((text) => fromPlain(JSON.parse(text)) as LedgerLine);
  await writeArchive(dir, `acct_${alice.tag}`, lines, newChain(`acct_${alice.tag}`, 1));
  const found = await checksFound();
  assert.ok(found.includes("archive_twice"), `${found}`);
  assert.ok(!found.includes("archive_gap"), `${found}`);
});

test("lines that two files share are reported by their numbers", async () => {
  const texts = (["first", "second"] as const).flatMap((which) => {
    const [, ...lines] = gunzipSync(readFileSync(fileOf(alice, which)))
      .toString()
      .trimEnd()
      .split("\n");
    return lines;
  });
  const lines = texts.slice(FIRST - 2, FIRST + 2).map((text) => fromPlain(JSON.parse(text)) as LedgerLine);
  await writeArchive(dir, `acct_${alice.tag}`, lines, newChain(`acct_${alice.tag}`, 1));
  const { err } = await tollgate(here, "ledger", "verify", "--account", alice.name, "--archive", dir);
  assert.match(err, /Lines 11 to 12 are in two files/);
  assert.match(err, /Lines 13 to 14 are in two files/);
});

test("if all files and digests are rewritten, the last link differs from the store's", async () => {
  let link = newChain(`acct_${alice.tag}`, 1);
  for (const which of ["first", "second"] as const) {
    rewrite(fileOf(alice, which), ({ head, lines }) => {
      if (which === "first") (lines[5] as { memo: string }).memo = "another note";
      const before = link.sha256;
      link = chained(
        link,
        lines.map((line) => fromPlain(line) as LedgerLine),
      );
      head.chain = { from: 1, before, after: link.sha256 };
    });
  }
  assert.deepEqual(await checksFound(), ["archive_chain"]);
  const ran = await tollgate(here, "ledger", "verify", "--account", alice.name, "--archive", dir);
  assert.match(ran.err, /: archive_chain: In the archive: The lines in the files are not what was archived/);
});

test("unrelated files are ignored, and files of unknown accounts are reported", async () => {
  writeFileSync(join(dir, "notes.txt"), "x");
  const stranger = fileOf(alice, "first").replace(`acct_${alice.tag}`, "acct_Stranger00");
  writeFileSync(stranger, good.get(fileOf(alice, "first").slice(dir.length + 1)) as Buffer);
  const ran = await tollgate(here, "ledger", "verify", "--archive", dir);
  assert.deepEqual([ran.status, ran.err], [0, ""]);
  assert.match(ran.out, /^The folder has files of accounts that this gateway does not have: acct_Stranger00\.$/m);
});

test("an archive of a version without digests is verified by its sums and reported as having no digests", async () => {
  const account = await here.account({ usd: "1" });
  for (let at = 0; at < 3; at++) {
    await here.store.credit(account.tag, { id: `pay-${at}`, amount: 1n, kind: "topup", note: "" });
  }
  age(account);
  const day = utcDay(Date.now() - 5 * DAY_MS);
  const archived = await tollgate(here, "ledger", "archive", "--before", day, "--to", dir, "--account", account.name);
  assert.equal(archived.status, 0, archived.err);
  const path = join(dir, readdirSync(dir).find((name) => name.startsWith(`acct_${account.tag}.`)) ?? "");
  rewrite(path, ({ head }) => {
    delete head.chain;
    head.tollgate_ledger = 1;
  });
  assert.ok(here.settings.store.kind === "embedded");
  const db = new DatabaseSync(join(here.settings.store.dir, "tollgate.db"));
  const sql =
    "UPDATE ledger SET memo = json_remove(memo, '$.chain', '$.payments', '$.counts') WHERE tag = ? AND kind = 'opening'";
  assert.equal(db.prepare(sql).run(account.tag).changes, 1);
  db.close();
  const ran = await tollgate(here, "ledger", "verify", "--account", account.name, "--archive", dir);
  assert.deepEqual([ran.status, ran.err], [0, ""]);
  assert.match(ran.out, /1 files are from a version without digests; their lines are verified by their sums\.$/m);
  assert.match(ran.out, /Lines 1 to 4 were archived without a digest; they are verified by their sums\.$/m);
  const asItWas = readFileSync(path);
  rewrite(path, ({ lines }) => void Object.assign(lines[1] as object, { more: 1 }));
  const widened = await tollgate(here, "ledger", "verify", "--account", account.name, "--archive", dir);
  assert.deepEqual(
    [widened.status, /archive_file: .* has members in line 2/.test(widened.err)],
    [1, true],
    widened.err,
  );
  writeFileSync(path, asItWas);
  // What is archived from here on has digests.
  await here.store.credit(account.tag, { id: "later", amount: 1n, kind: "topup", note: "" });
  age(account);
  const more = await tollgate(here, "ledger", "archive", "--before", day, "--to", dir, "--account", account.name);
  assert.equal(more.status, 0, more.err);
  const sound = await tollgate(here, "ledger", "verify", "--account", account.name, "--archive", dir);
  assert.deepEqual([sound.status, sound.err], [0, ""]);
  assert.match(sound.out, /Lines 1 to 4 were archived without a digest; they are verified by their sums\.$/m);
  const second = join(dir, readdirSync(dir).filter((name) => name.startsWith(`acct_${account.tag}.`))[1] ?? "");
  rewrite(second, ({ lines }) => void Object.assign(lines[0] as object, { memo: "x" }), { heal: true });
  const found = await tollgate(here, "ledger", "verify", "--account", account.name, "--archive", dir);
  assert.deepEqual([found.status, /archive_chain/.test(found.err)], [1, true], found.err);
});

test("a file whose lines are still in the store is compared with them line by line", async () => {
  const account = await here.account({ usd: "1" });
  for (let at = 0; at < 3; at++) {
    await here.store.credit(account.tag, { id: `pay-${at}`, amount: 1n, kind: "topup", note: "" });
  }
  const lines = await here.store.readLedger(account.tag, 0, 100);
  const { path } = await writeArchive(dir, `acct_${account.tag}`, lines, newChain(`acct_${account.tag}`, 1));
  const verify = () => tollgate(here, "ledger", "verify", "--account", account.name, "--archive", dir);
  const sound = await verify();
  assert.deepEqual([sound.status, sound.err], [0, ""]);

  rewrite(path, (text) => void Object.assign(text.lines[2] as object, { memo: "another" }), { heal: true });
  const changed = await verify();
  assert.equal(changed.status, 1);
  assert.match(
    changed.err,
    /, line 3: archive_line: In the archive: The line in the file differs from the one in the store\./,
  );
  assert.ok(changed.out.includes("out of balance: 1."), changed.out);

  rmSync(path);
  const last = lines.at(-1) as LedgerLine;
  const more = [...lines, { ...last, seq: last.seq + 1 }];
  await writeArchive(dir, `acct_${account.tag}`, more, newChain(`acct_${account.tag}`, 1));
  const made = await verify();
  assert.equal(made.status, 1);
  assert.match(made.err, /, line 5: archive_line: In the archive: The line is in a file but not in the store\./);
});
