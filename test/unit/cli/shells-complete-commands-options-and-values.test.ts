/** The scripts of `tollgate completion`, run by the shells that they are for. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { promisify } from "node:util";
import { run } from "./captured-run.ts";

/** What the user has typed so far; some words that are offered; some that are not. */
const CASES = [
  ["le", ["ledger"], ["serve", "--json"]],
  ["ledger ", ["show", "verify", "archive"], ["ledger", "create"]],
  ["ledger verify --", ["--account", "--archive", "--data", "--help"], ["--by"]],
  ["usage --by ", ["account", "group", "model", "key", "day", "upstream"], ["--by", "csv"]],
  ["usage --format c", ["csv"], ["table"]],
  ["completion ", ["bash", "zsh", "fish"], ["serve"]],
  ["key create --account ledger --g", ["--group"], ["--archive"]],
  ["ledger archive --to ", ["a-file"], ["--before"]],
  ["account create --plan ", [], ["show", "--json"]],
] as const;

/** Scripts that ask each shell for completions; each prints one per line. */
const ASK = {
  bash: (script: string, words: readonly string[]) => `
    source ${script}; cd "$(dirname ${script})"
    COMP_WORDS=(${["tollgate", ...words].map(quoted).join(" ")}); COMP_CWORD=${words.length}
    _tollgate; printf '%s\n' "\${COMPREPLY[@]}"`,
  // compadd and _files exist only while zsh completes; these replace them, and leave out words without the typed
  // prefix.
  zsh: (script: string, words: readonly string[]) => `
    compdef() { :; }
    compadd() { shift; print -rl -- \${(M)@:#\${words[CURRENT]}*}; }
    _files() { print -rl -- *; }
    source ${script}; cd \${0:h}; cd "$(dirname ${script})"
    words=(${["tollgate", ...words].map(quoted).join(" ")}); CURRENT=${words.length + 1}
    _tollgate`,
  fish: (script: string, words: readonly string[]) => `
    source ${script}; cd (dirname ${script})
    complete -C ${quoted(["tollgate", ...words].join(" "))} | string split -f 1 \\t; true`,
} as const;

const ARGS = { bash: ["--norc", "-c"], zsh: ["-f", "-c"], fish: ["--no-config", "-c"] } as const;
const quoted = (word: string): string => `'${word}'`;

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-shell-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

for (const shell of ["bash", "zsh", "fish"] as const) {
  test(`${shell} offers commands, options and values where they belong`, async (t) => {
    const dir = folder(t);
    const { status, out, err } = await run(["completion", shell]);
    assert.deepEqual([status, err], [0, ""]);
    const script = join(dir, "a-file");
    writeFileSync(script, out);
    for (const [line, offered, others] of CASES) {
      const asked = ASK[shell](script, line.split(" "));
      const { stdout, stderr } = await promisify(execFile)(shell, [...ARGS[shell], asked], { encoding: "utf8" });
      const found = stdout.split("\n").filter((word) => word !== "");
      assert.equal(stderr, "", line);
      for (const word of offered) assert.ok(found.includes(word), `${line}: ${word} among ${found}`);
      for (const word of others) assert.ok(!found.includes(word), `${line}: ${word} among ${found}`);
    }
  });
}

test("the zsh script also works as an autoloaded function, from its first call on", async (t) => {
  const dir = folder(t);
  writeFileSync(join(dir, "_tollgate"), (await run(["completion", "zsh"])).out);
  const asked = `
    compdef() { :; }
    compadd() { shift; print -rl -- "$@"; }
    fpath=(${dir} $fpath); autoload -Uz _tollgate
    words=(tollgate ledger ''); CURRENT=3
    _tollgate; print again; _tollgate`;
  const { stdout, stderr } = await promisify(execFile)("zsh", [...ARGS.zsh, asked], { encoding: "utf8" });
  const [first, second] = stdout.split("again\n");
  assert.deepEqual([stderr, second], ["", first]);
  assert.ok(first?.split("\n").includes("verify"), stdout);
});

test("an unknown shell is misuse, and the message names the known ones", async () => {
  for (const argv of [["completion", "tcsh"], ["completion"]]) assert.equal((await run(argv)).status, 2);
  assert.match((await run(["completion", "tcsh"])).err, /Allowed choices are bash, zsh, fish\./);
});
