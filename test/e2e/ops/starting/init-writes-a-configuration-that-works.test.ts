/** `tollgate init` as a new user runs it: the file that it writes is valid, works, and is never overwritten. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { BARE_ENV, PROGRAM, spawnGateway } from "../../../rig/gateway.ts";

const FLAGS = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m-1"];

interface Ran {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-init-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Runs the command as a process whose standard input is not a terminal. */
function tollgate(cwd: string, argv: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { cwd, env: { ...BARE_ENV, ...env }, encoding: "utf8" as const };
    const child = execFile(process.execPath, [PROGRAM, ...argv], options, (_error, out, err) =>
      resolve({ status: child.exitCode, out, err }),
    );
    child.stdin?.end();
  });
}

/** Runs `init` on a pseudo-terminal (script(1)) and types an answer whenever a question has been asked. */
async function onTerminal(cwd: string, answers: readonly string[]): Promise<{ status: number | null; shown: string }> {
  const command = `'${process.execPath}' '${PROGRAM}' init`;
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    cwd,
    env: BARE_ENV,
    stdio: "pipe",
  });
  let shown = "";
  let asked = 0;
  child.stdout.on("data", (data: Buffer) => {
    shown += data;
    if (!/: $/.test(shown) || asked >= answers.length) return;
    child.stdin.write(answers[asked++]);
  });
  const [status] = (await once(child, "exit")) as [number | null];
  return { status, shown: shown.replaceAll("\r", "") };
}

test("three answers on a terminal, wrong ones asked again, write a file that check accepts", async (t) => {
  const dir = folder(t);
  const answers = ["models.example\n", "http://127.0.0.1:11434/v1\n", "\n", "llama-3:8b\n", "sk-a-key!\n", "UP_KEY\n"];
  const { status, shown } = await onTerminal(dir, answers);
  assert.equal(status, 0, shown);
  for (const words of ["It must begin with http", "An answer is needed.", "Do not enter the key itself."])
    assert.ok(shown.includes(words), shown);
  assert.match(shown, /Wrote tollgate\.yaml\..*\nNext:\n\n {2}export UP_KEY=[\s\S]* tollgate check\n/);
  const text = readFileSync(join(dir, "tollgate.yaml"), "utf8");
  assert.match(text, /^ {4}base_url: "http:\/\/127\.0\.0\.1:11434\/v1"$/m);
  assert.ok(!text.includes("sk-a-key"));
  const good = await tollgate(dir, ["check"], { UP_KEY: "k" });
  assert.deepEqual([good.status, good.err], [0, ""]);
  assert.match((await tollgate(dir, ["check"])).err, /the environment variable UP_KEY is not set/);
});

test("if the user aborts the questions, nothing is written", async (t) => {
  const dir = folder(t);
  const { status, shown } = await onTerminal(dir, ["http://127.0.0.1:11434/v1\n", "\u0004"]);
  assert.equal(status, 1, shown);
  assert.match(shown, /Nothing was written\./);
  assert.deepEqual(readdirSync(dir), []);
});

test("without a terminal no questions are asked: missing or wrong options are status 2, and nothing is written", async (t) => {
  const dir = folder(t);
  const cases = [
    [[], "--base-url and --model are required, because there is no terminal for questions."],
    [["--base-url", "models.example", "--model", "m"], "--base-url: It must begin with"],
    [[...FLAGS, "--api-key-env", "sk-x"], "--api-key-env: That is not a variable name"],
    [[...FLAGS, "--store", "mysql://x"], "Nothing was written: tollgate.yaml:"],
    [["--base-url", "http://user:hunter2@h/v1", "--model", "m"], "Nothing was written: tollgate.yaml:"],
  ] as const;
  for (const [argv, words] of cases) {
    const ran = await tollgate(dir, ["init", ...argv]);
    assert.deepEqual([ran.status, ran.out], [2, ""], `${argv}: ${ran.err}`);
    assert.ok(ran.err.includes(words), ran.err);
    assert.ok(!ran.err.includes("hunter2"));
  }
  assert.deepEqual(readdirSync(dir), []);
});

test("an existing file is not changed; if the file cannot be written, that is reported", async (t) => {
  const dir = folder(t);
  writeFileSync(join(dir, "tollgate.yaml"), "mine");
  const there = await tollgate(dir, ["init", ...FLAGS]);
  assert.equal(there.status, 1);
  assert.match(there.err, /^tollgate\.yaml already exists and is not changed\. Use --config to name another/);
  assert.equal(readFileSync(join(dir, "tollgate.yaml"), "utf8"), "mine");
  const nowhere = await tollgate(dir, ["init", ...FLAGS, "--config", "no/such/tollgate.yaml"]);
  assert.deepEqual(
    [nowhere.status, nowhere.err],
    [1, "no/such/tollgate.yaml cannot be written (ENOENT); use --config to name another file.\n"],
  );
  const other = await tollgate(dir, ["init", ...FLAGS, "--config", "other.yaml", "--json"]);
  assert.deepEqual(JSON.parse(other.out), {
    file: "other.yaml",
    model: "m-1",
    group: "default",
    asks: "http://127.0.0.1:9/v1/chat/completions",
  });
  const { mode } = statSync(join(dir, "other.yaml"));
  assert.equal(mode & 0o777, 0o600, "the file contains a secret and is private");
  const again = await tollgate(dir, ["init", ...FLAGS, "--config", "another.yaml"]);
  assert.equal(again.status, 0);
  const keyIn = (file: string) => /sealing_keys: \["([\w-]{43})"\]/.exec(readFileSync(join(dir, file), "utf8"))?.[1];
  assert.ok(
    keyIn("other.yaml") && keyIn("other.yaml") !== keyIn("another.yaml"),
    "each configuration has its own sealing key",
  );
});

test("the written configuration serves the first request, with the commands that init prints", async (t) => {
  const dir = folder(t);
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const flags = [
    "--base-url",
    simulator.url.replace(/(\/v1)?$/, "/v1"),
    "--model",
    "m-1",
    "--listen",
    "127.0.0.1:0",
    "--admin",
    "127.0.0.1:0",
  ];
  const { out } = await tollgate(dir, ["init", ...flags, "--store", `embedded:${dir}/data`]);
  const gateway = await spawnGateway(readFileSync(join(dir, "tollgate.yaml"), "utf8"));
  t.after(() => gateway.stop());
  const env = { TOLLGATE_ADMIN_URL: gateway.adminUrl };
  const commands = [...out.matchAll(/^ {2}(?:npx --no-install )?tollgate ((?:account|topup|key) .*)$/gm)].map(
    ([, words]) => (words as string).split(" "),
  );
  assert.equal(commands.length, 3);
  let key = "";
  for (const argv of commands) {
    const ran = await tollgate(dir, argv, env);
    assert.equal(ran.status, 0, ran.err);
    key = /sk-[0-9A-Za-z]{48}/.exec(ran.out)?.[0] ?? key;
  }
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m-1", messages: [{ role: "user", content: "hi" }] }),
  });
  assert.equal(reply.status, 200, await reply.text());
});
