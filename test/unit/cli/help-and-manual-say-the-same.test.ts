/** `--help` and `tollgate man` are generated from the commands: they contain all of them, and examples that work. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { EXAMPLES } from "../../../src/cli/guide/guide.ts";
import { run } from "./captured-run.ts";

const unasked = () => Promise.reject(new Error("asked a gateway"));

/** Names of commands in a command's help. */
async function below(path: readonly string[]): Promise<string[]> {
  const { out } = await run([...path, "--help"]);
  const listed = /\nCommands:\n([\s\S]*?)(?:\n\n|$)/.exec(out)?.[1] ?? "";
  const names = listed.split("\n").map((line) => /^ {2}([a-z-]+)(?: |$)/.exec(line)?.[1]);
  return names.filter((name) => name !== undefined && name !== "help") as string[];
}

async function allPaths(path: readonly string[] = []): Promise<string[][]> {
  const children = await below(path);
  const paths = await Promise.all(children.map((name) => allPaths([...path, name])));
  return [[...path], ...paths.flat()];
}

test("the manual page has every command and option of the help, and groff reads it without a warning", async () => {
  const { out: page } = await run(["man"]);
  const formatted = spawnSync("groff", ["-man", "-ww", "-Tascii", "-P-c"], { input: page, encoding: "utf8" });
  assert.deepEqual([formatted.status, formatted.stderr], [0, ""]);
  const text = page.replaceAll("\\-", "-");
  const paths = await allPaths();
  assert.ok(paths.length > 30);
  for (const path of paths) {
    if (path.length > 0 && (await below(path)).length === 0)
      assert.match(text, new RegExp(`^${path.join(" ")}( <|$)`, "m"));
    const { out } = await run([...path, "--help"]);
    for (const [, long] of out.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)) {
      if (long !== "--help") assert.ok(text.includes(long as string), `${path.join(" ")} ${long}`);
    }
  }
});

test("the manual page gives an option's choices, its default, and whether it is required", async () => {
  const page = (await run(["man"])).out.replaceAll("\\-", "-");
  assert.ok(page.includes("\nProtocol of the model server (one of chat, messages, responses; default: chat).\n"), page);
  assert.ok(page.includes("\nThe account that pays (required).\n"), page);
});

test("the manual page has the usual sections, and each exit status", async () => {
  const { out } = await run(["man"]);
  const sections = [...out.matchAll(/^\.SH (.*)$/gm)].map(([, name]) => name);
  const usual = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXAMPLES", "ENVIRONMENT", "EXIT STATUS"];
  assert.deepEqual(sections, usual);
  for (const status of [0, 1, 2]) assert.match(out, new RegExp(`\n\\.B ${status}\n[A-Z]`));
});

test("every example is a valid command line, and is in the help of its command and in the manual", async () => {
  const page = (await run(["man"])).out.replaceAll("\\-", "-");
  for (const [path, lines] of Object.entries(EXAMPLES)) {
    const help = (await run([...path.split(" ").filter(Boolean), "--help"])).out;
    assert.match(help, /\nExamples:\n/, path);
    for (const line of lines) {
      assert.ok(help.includes(`\n  ${line}\n`), line);
      assert.ok(page.includes(`\n${line}\n`), line);
      const words = [...line.replace(/ > .*/, "").matchAll(/"([^"]*)"|(\S+)/g)].map(
        ([, inQuotes, plain]) => inQuotes ?? plain,
      );
      const [program, ...argv] = words as string[];
      assert.equal(program, "tollgate");
      const done = async () => 0;
      const config = argv[0] === "init" ? ["--config", "package.json"] : [];
      const ran = await run([...argv, ...config], {
        fetch: unasked,
        serve: async () => {},
        check: done,
        env: { TOLLGATE_ADMIN_TOKEN: "t" },
      });
      if (ran.err.startsWith("The file invoice.csv does not exist")) continue;
      assert.notEqual(ran.status, 2, `${line}: ${ran.err}`);
    }
  }
});

test("headings are bold only on a terminal, and not with NO_COLOR or TERM=dumb", async () => {
  const shown = async (isTTY: boolean, env: Record<string, string>) => {
    let out = "";
    await run(["usage", "--help"], { stdout: { write: (text) => (out += text), isTTY }, env });
    return out;
  };
  assert.ok((await shown(true, {})).includes("\u001b[1mExamples:\u001b[22m"));
  assert.ok((await shown(true, {})).includes("\u001b[1mOptions:\u001b[22m"));
  for (const plain of [
    await shown(false, {}),
    await shown(true, { NO_COLOR: "1" }),
    await shown(true, { TERM: "dumb" }),
  ])
    assert.ok(!plain.includes("\u001b"), plain);
});
