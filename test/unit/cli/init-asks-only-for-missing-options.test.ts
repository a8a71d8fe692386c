/** `tollgate init` with a user at a keyboard: its questions, how answers are read, and its last message. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import test, { type TestContext } from "node:test";
import { formatProblem, loadConfig } from "../../../src/config/config.ts";
import { COMMAND } from "../../../src/values/program/program.ts";
import { urlOf } from "../../../src/values/settings.ts";
import { type Ran, run } from "./captured-run.ts";

const FLAGS = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m-1"];

/**
 * Runs `init` for a file in a folder of its own.
 * @param options.typed the lines that the user types.
 */
async function init(
  t: TestContext,
  argv: readonly string[],
  options: { typed?: string; onAsked?: (file: string) => void } = {},
): Promise<Ran & { file: string; asked: string }> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-init-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "first.yaml");
  let asked = "";
  const screen = {
    write(text: string) {
      asked += text;
      if (text.endsWith(": ")) options.onAsked?.(file);
    },
  };
  const stdin = Object.assign(Readable.from([options.typed ?? ""]), { isTTY: true });
  return { ...(await run(["init", "--config", file, ...argv], { stdin, stderr: screen })), file, asked };
}

/** The settings in a file. */
function read(file: string) {
  const loaded = loadConfig({ text: readFileSync(file, "utf8"), env: {} });
  if ("problems" in loaded) assert.fail(loaded.problems.map(formatProblem).join("\n"));
  return loaded.settings;
}

test("if all required options are given, there are no questions, also on a terminal", async (t) => {
  const ran = await init(t, FLAGS);
  assert.deepEqual([ran.status, ran.asked], [0, ""]);
});

test("blanks around an answer are trimmed", async (t) => {
  const ran = await init(t, [], { typed: "  http://127.0.0.1:9/v1 \n\tm-1 \n  \n" });
  assert.equal(ran.status, 0, ran.asked);
  assert.deepEqual([...read(ran.file).catalog.models.keys()], ["m-1"]);
});

test("a file created while questions are asked is not changed", async (t) => {
  const onAsked = (file: string) => writeFileSync(file, "somebody else's");
  const ran = await init(t, [], { typed: "http://127.0.0.1:9/v1\nm-1\n\n", onAsked });
  assert.equal(ran.status, 1);
  assert.ok(ran.asked.includes(`${ran.file} already exists and is not changed.`), ran.asked);
  assert.equal(readFileSync(ran.file, "utf8"), "somebody else's");
});

test("the next commands name the configuration file unless it is the default one", async (t) => {
  const { out, file } = await init(t, FLAGS);
  assert.ok(out.includes(`\n  ${COMMAND} check --config ${file}\n  ${COMMAND} serve --config ${file}\n`), out);
});

test("the commands for another terminal name the gateway's address and its data folder unless they are the defaults", async (t) => {
  const usual = (await init(t, FLAGS)).out;
  assert.ok(usual.includes(`\n  ${COMMAND} account create me\n`), usual);
  const elsewhere = await init(t, [...FLAGS, "--admin", "127.0.0.1:9788", "--store", "embedded:/srv/my data"]);
  assert.match(elsewhere.out, / account create me --admin 127\.0\.0\.1:9788 --data '\/srv\/my data'\n/);
  assert.match(elsewhere.out, / key create --account me --group default --admin 127/);
  assert.equal(urlOf(read(elsewhere.file).admin), "http://127.0.0.1:9788");
  const anyPort = (await init(t, [...FLAGS, "--admin", "127.0.0.1:0"])).out;
  assert.ok(anyPort.includes(`\n  ${COMMAND} account create me\n`), anyPort);
  const atSocket = (await init(t, [...FLAGS, "--admin", "unix:/run/tollgate/admin.sock"])).out;
  assert.ok(atSocket.includes(" account create me --admin unix:/run/tollgate/admin.sock\n"), atSocket);
});

test("the last line says where the operator's pages are, if a browser on this machine can open them", async (t) => {
  const browser = async (...argv: string[]) =>
    /^or in a browser: (.*)$/m.exec((await init(t, [...FLAGS, ...argv])).out);
  assert.equal((await browser())?.[1], "http://127.0.0.1:8788/console/ (sign in with the token in data/admin-token)");
  const elsewhere = await browser("--admin", "[::1]:9788", "--store", "redis://127.0.0.1:6379");
  assert.equal(elsewhere?.[1], "http://[::1]:9788/console/ (sign in with the admin token)");
  for (const admin of ["127.0.0.1:0", "unix:/run/tollgate/admin.sock"]) {
    assert.equal(await browser("--admin", admin), null, admin);
  }
});

test("the address of the upstream requests is shown, and unlikely base URLs get a hint", async (t) => {
  const asked = async (baseUrl: string, protocol: string) => {
    const { out, err, asked } = await init(t, ["--base-url", baseUrl, "--model", "m-1", "--protocol", protocol]);
    return { address: /^Wrote .*\. Requests will go to (\S+)\.$/m.exec(out)?.[1], hint: err || asked };
  };
  const whole = await asked("http://127.0.0.1:9/v1", "chat");
  assert.deepEqual(whole, { address: "http://127.0.0.1:9/v1/chat/completions", hint: "" });
  const other = await asked("http://127.0.0.1:9/api/v4/", "responses");
  assert.deepEqual(other, { address: "http://127.0.0.1:9/api/v4/responses", hint: "" });
  for (const bare of ["http://127.0.0.1:9", "http://127.0.0.1:9/"]) {
    const { address, hint } = await asked(bare, "messages");
    assert.equal(address, "http://127.0.0.1:9/messages");
    assert.match(
      hint,
      /endpoints below \/v1\. If this one does too, change it to base_url: http:\/\/127\.0\.0\.1:9\/v1\n$/,
    );
  }
  for (const endpoint of ["/chat/completions", "/messages/", "/responses"]) {
    const { hint } = await asked(`http://127.0.0.1:9/v1${endpoint}`, "chat");
    assert.match(hint, /endpoint is appended to base_url .*\. Change it to base_url: http:\/\/127\.0\.0\.1:9\/v1\n$/);
  }
});

test("the file has the given values unchanged: the protocol, and a text that looks like a reference", async (t) => {
  const dir = "/srv/a$" + "{HOME}#\"b':c";
  const ran = await init(t, [...FLAGS, "--protocol", "messages", "--store", `embedded:${dir}`]);
  assert.equal(ran.status, 0, ran.asked);
  const { catalog, store } = read(ran.file);
  assert.deepEqual(store, { kind: "embedded", dir });
  assert.equal(catalog.models.get("m-1")?.routes[0]?.protocol, "messages");
});
