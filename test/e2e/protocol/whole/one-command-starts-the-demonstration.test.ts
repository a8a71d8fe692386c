/** The first minute of a newcomer: one command in an empty folder, its `curl` line run as printed, and how it stops. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL("../../../../src/main.ts", import.meta.url));
/** Any free ports, so that a gateway on this machine does not interfere. */
const PORTS = { TOLLGATE_LISTEN: "127.0.0.1:0", TOLLGATE_ADMIN: "127.0.0.1:0" };

/**
 * The environment without the settings of the person who runs the tests: an exported TOLLGATE_DATA would be another
 * gateway's.
 */
const INHERITED = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TOLLGATE_")));

/** What the example configuration takes from the environment. */
const SECRETS = {
  ...Object.fromEntries(
    ["TOLLGATE_ADMIN_TOKEN", "TOLLGATE_SEALING_KEY", "EAST_KEY", "WEST_KEY"].map((name) => [
      name,
      name.padEnd(40, "x"),
    ]),
  ),
  TOLLGATE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, "w").toString("base64")}`,
};

interface Demo {
  readonly child: ChildProcess;
  readonly printed: string;
}

/** Starts the demonstration and reads what it prints for a newcomer. */
async function startDemo(cwd: string): Promise<Demo> {
  const child = spawn(process.execPath, [MAIN, "serve"], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...INHERITED, ...PORTS },
  });
  let printed = "";
  const welcomed = Promise.withResolvers<void>();
  const read = (data: Buffer) => {
    printed += data;
    if (printed.includes("Ctrl-C")) welcomed.resolve();
  };
  child.stdout?.on("data", read);
  child.stderr?.on("data", read);
  child.once("exit", (code) => welcomed.reject(new Error(`the demonstration ended with ${code}:\n${printed}`)));
  await welcomed.promise;
  return { child, printed };
}

async function stop({ child }: Demo, signal: NodeJS.Signals): Promise<number | null> {
  const exited = once(child, "exit");
  child.kill(signal);
  const [code] = (await exited) as [number | null];
  return code;
}

test("one command runs the demonstration, and its curl line streams an answer", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-demo-"));
  let demo = await startDemo(dir);
  try {
    assert.match(demo.printed, /simulation/i);
    assert.match(demo.printed, /sk-[0-9A-Za-z]{48}/);
    const address = (name: string) =>
      new RegExp(`^ +${name} +(http://127\\.0\\.0\\.1:\\d+\\S*)`, "m").exec(demo.printed)?.[1] ?? "";
    for (const name of ["clients", "site", "console", "operator", "metrics", "admin API"])
      assert.ok(address(name), `${name}: ${demo.printed}`);
    const command = /^ *curl [\s\S]*?'$(?=\n\n)/m.exec(demo.printed)?.[0] ?? "";
    assert.ok(command.includes("/v1/chat/completions"), demo.printed);
    const { stdout } = await run("sh", ["-c", `${command} --silent --show-error`]);
    assert.match(stdout, /^data: \{/);
    assert.ok(stdout.trimEnd().endsWith("data: [DONE]"));
    assert.match(stdout, /simulation/);
    const site = await run("sh", ["-c", `curl -s -i ${address("site")}`]);
    assert.match(site.stdout, /^HTTP\/1\.1 200 [\s\S]*text\/html/);
    for (const name of ["console", "operator"]) {
      const page = await run("sh", ["-c", `curl -s -L -i ${address(name)}`]);
      assert.match(page.stdout, /^HTTP\/1\.1 200 [\s\S]*<div id="app">/m, name);
    }
    const invitation = /npx --no-install tollgate (account invite [^`]+)/.exec(demo.printed)?.[1] ?? "";
    // Run as printed: the ports are not the usual ones.
    const invited = await run(process.execPath, [MAIN, ...invitation.split(" ")], {
      cwd: dir,
      env: INHERITED,
    });
    assert.ok(invited.stdout.startsWith(`${address("console")}/sign-in#`), invited.stdout);
    const metrics = await run("sh", ["-c", `curl -s ${address("metrics")}`]);
    assert.match(metrics.stdout, /tollgate_requests_total\{.*model="demo-chat".*\} 1/);
    const firstSite = address("site");
    const key = /sk-[0-9A-Za-z]{48}/.exec(demo.printed)?.[0] ?? "";
    assert.equal(await stop(demo, "SIGINT"), 0);
    const written = ["", "data"].map((folder) => readdirSync(join(dir, folder)));
    assert.deepEqual(written, [["data"], ["demo"]], "nothing is written where a later configuration would find it");

    demo = await startDemo(dir);
    assert.ok(!demo.printed.includes(key) && !/sk-[0-9A-Za-z]{48}/.test(demo.printed), "shown only once");
    const another = /^ *npx --no-install tollgate (key create .*)$/m.exec(demo.printed)?.[1] ?? "";
    assert.ok(another, demo.printed);
    // A file left by another program that ran here; without a configuration the demonstration runs.
    writeFileSync(join(dir, "data", "admin-token"), "of-another-gateway\n");
    const made = await run(process.execPath, [MAIN, ...another.split(" ")], {
      cwd: dir,
      env: INHERITED,
    });
    const fresh = /sk-[0-9A-Za-z]{48}/.exec(made.stdout)?.[0] ?? "";
    for (const one of [key, fresh]) {
      const reply = await run("sh", [
        "-c",
        `${command.replace(key, one).replace(firstSite, address("site"))} --silent -o /dev/null -w '%{http_code}'`,
      ]);
      assert.equal(reply.stdout, "200");
    }
    assert.equal(await stop(demo, "SIGINT"), 0);
  } finally {
    if (demo.child.exitCode === null && demo.child.signalCode === null) demo.child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
});

test("check says what is valid and what is wrong, with line and key", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-check-"));
  try {
    const check = (...args: string[]) =>
      run(process.execPath, [MAIN, "check", ...args], { cwd: dir, env: { ...INHERITED, ...SECRETS } }).then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        (error: { code: number; stdout: string; stderr: string }) => error,
      );
    const good = fileURLToPath(new URL("../../../../tollgate.example.yaml", import.meta.url));
    const passed = await check("--config", good);
    assert.equal(passed.code, 0, passed.stderr);
    assert.match(passed.stdout, /is good: 1 model, 2 groups, /);
    assert.ok(!passed.stderr.includes("models.big-1."), "its tools have prices");
    const warned = JSON.parse((await check("--json", "--config", good)).stdout) as { warnings: string[] };
    const unpriced = warned.warnings.map((one) => `${good}: warning: ${one}\n`).join("");
    assert.equal(passed.stderr, unpriced);
    const installation = readFileSync(new URL("../../../../docs/installation.md", import.meta.url), "utf8");
    const least = /^## Configuration\n[\s\S]*?^```yaml\n(?<text>[\s\S]*?)^```$/m.exec(installation)?.groups?.text ?? "";
    assert.match(least, /^models:/m);
    writeFileSync(join(dir, "least.yaml"), least);
    const smallest = await check("--config", "least.yaml");
    assert.equal(smallest.code, 0, smallest.stderr);
    assert.match(smallest.stdout, /is good: 1 model, 1 group, 0 cards, 1 upstream\n/);
    const nothing = await check();
    assert.equal(nothing.code, 1);
    assert.match(
      nothing.stderr,
      /^tollgate\.yaml: there is no such file here; create it with: .*tollgate init, or name/,
    );
    assert.equal(JSON.parse((await check("--json")).stdout).ok, false);
    assert.match((await check("--config", "away.yaml")).stderr, /^away\.yaml:1:1: the file cannot be read \(ENOENT\)/);
    writeFileSync(join(dir, "tollgate.yaml"), "listen: 127.0.0.1:0\nno_such_key: 1\nmodels: 7\n");
    const refused = await check();
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /tollgate\.yaml:2:\d+: no_such_key/);
    const json = await check("--json");
    assert.equal(json.code, 1);
    assert.equal((JSON.parse(json.stdout) as { ok: boolean }).ok, false);
    const absent = await check("--config", "absent.yaml");
    assert.equal(absent.code, 1);
    assert.match(absent.stderr + absent.stdout, /absent\.yaml/);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
