import assert from "node:assert/strict";
import test from "node:test";
import { USAGE_BY } from "../../../src/console/vocabulary.ts";
import { run } from "./captured-run.ts";

/** No request is made when the command itself is wrong. */
const unasked = () => Promise.reject(new Error("asked a gateway"));

test("misuse is status 2 with a message on standard error and nothing on standard output", async () => {
  const misuses: string[][] = [
    [],
    ["acount", "list"],
    ["account"],
    ["account", "destroy", "alice"],
    ["account", "create"],
    ["account", "create", "alice", "bob"],
    ["account", "create", "alice", "--plam", "pro"],
    ["account", "adjust", "alice", "--usd", "1", "--id", "x"],
    ["account", "show", ".."],
    ["account", "show", ""],
    ["key", "create", "--account", "alice"],
    ["key", "revoke", "."],
    ["topup", "--account", "alice", "--usd", "1"],
    ["topup", "--account", "alice", "--id", "p", "--usd"],
    ["ledger", "show"],
    ["serve", "extra"],
  ];
  for (const argv of misuses) {
    const ran = await run(argv, { fetch: unasked, env: { TOLLGATE_ADMIN_TOKEN: "t" } });
    assert.equal(ran.status, 2, argv.join(" "));
    assert.equal(ran.out, "", argv.join(" "));
    assert.ok(ran.err.length > 0, argv.join(" "));
  }
  assert.match((await run(["acount", "list"])).err, /Did you mean account\?/);
});

test("serve and check have no --admin and --data: their configuration says it", async () => {
  for (const command of ["serve", "check"]) {
    for (const [option, setting] of [
      ["--admin", "`admin`"],
      ["--data", "`store`"],
    ] as const) {
      for (const argv of [
        [command, option, "x"],
        [option, "x", command],
      ]) {
        const ran = await run(argv);
        assert.deepEqual([ran.status, ran.out], [2, ""], argv.join(" "));
        assert.ok(
          ran.err.startsWith(`${option} is for commands that call a running gateway.`) && ran.err.includes(setting),
          ran.err,
        );
      }
    }
    const help = (await run([command, "--help"])).out;
    assert.match(help, /--json/);
    assert.doesNotMatch(help, /--admin|--data/);
  }
});

test("a wrong value is status 2, and the message names the allowed ones", async () => {
  const wrong = [
    [
      "usage --by nonsense",
      `'--by <thing>' argument 'nonsense' is invalid. Allowed choices are ${USAGE_BY.join(", ")}.`,
    ],
    ["usage --format xml", "Allowed choices are table, csv, json."],
    ["ledger show --account a --format xml", "Allowed choices are table, csv, json."],
    ["explain --key-id k --model m --protocol smtp", "Allowed choices are chat, messages, responses."],
    ["ledger show --account a --last 0", "--last must be a whole number from 1 to 1000;"],
    ["ledger show --account a --last 1001 --attempts", "--last must be a whole number from 1 to 1000;"],
    ["ledger show --account a --last many --follow", "--last must be a whole number from 1 to 1000;"],
    ["card list", "Name the account"],
    ["card list a --account b", "The account is named twice"],
    ["audit --last 1001", "--last must be a whole number from 1 to 1000; older lines are in the log."],
    ["audit --last 0", "--last must be a whole number from 1 to 1000"],
    ["audit --follow --last many", "--last must be a whole number from 1 to 1000"],
    ["explain --key-id k --model m", "required option '--protocol <protocol>' not specified"],
    ["explain --model m", "required options '--key-id <id>', '--protocol <protocol>' not specified"],
    ["explain --keyid k", "unknown option '--keyid'\n(Did you mean --key-id?)"],
    ["topup alice", "too many arguments for 'topup'"],
  ] as const;
  for (const [command, words] of wrong) {
    const ran = await run(command.split(" "), { fetch: unasked, env: { TOLLGATE_ADMIN_TOKEN: "t" } });
    assert.equal(ran.status, 2, command);
    assert.ok(ran.err.includes(words), ran.err);
  }
});

test("an empty name of a file or folder, as of a variable that is not set, is status 2", async () => {
  for (const argv of [
    ["serve", "--config", ""],
    ["check", "--config", ""],
    ["init", "--config", ""],
    ["store", "backup", ""],
    ["ledger", "verify", "--archive", ""],
    ["ledger", "archive", "--before", "2026-08-01", "--to", ""],
    ["code", "create", "--card", "day", "--count", "1", "--output", ""],
    ["reconcile", "--upstream", "east", "--from", ""],
  ]) {
    const ran = await run(argv, { fetch: unasked, env: { TOLLGATE_ADMIN_TOKEN: "t" } });
    assert.equal(ran.status, 2, argv.join(" "));
    assert.match(ran.err, /'' is invalid.* It must name a file or a folder\./, argv.join(" "));
  }
});

test("an address that is invalid or has a password is status 2, and the message does not repeat the password", async () => {
  for (const url of [
    "8788",
    "ftp://127.0.0.1",
    "http://admin:hunter2@127.0.0.1:8788",
    "http://127.0.0.1/?token=hunter2",
  ]) {
    const ran = await run(["account", "list"], { fetch: unasked, env: { TOLLGATE_ADMIN_URL: url } });
    assert.equal(ran.status, 2, url);
    assert.match(ran.err, /TOLLGATE_ADMIN_URL/);
    assert.ok(!ran.err.includes("hunter2"));
  }
});

test("help is status 0 on standard output, with the options that every command has", async () => {
  for (const argv of [["--help"], ["account", "--help"], ["topup", "--help"], ["help", "key"]]) {
    const ran = await run(argv);
    assert.equal(ran.status, 0, argv.join(" "));
    assert.match(ran.out, /Usage: tollgate/);
    assert.equal(ran.err, "");
  }
  assert.match((await run(["topup", "--help"])).out, /--json/);
  assert.match((await run(["--version"])).out, /^\d+\.\d+\.\d+\n$/);
});
