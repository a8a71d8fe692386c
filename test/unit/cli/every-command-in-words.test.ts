import assert from "node:assert/strict";
import test from "node:test";
import { readKey } from "../../../src/values/key.ts";
import { startGateway } from "./captured-run.ts";

test("account: create, list, show, set-plan, adjust", async (t) => {
  const { tollgate } = await startGateway(t);
  assert.deepEqual(await tollgate("account", "list"), { status: 0, out: "No accounts.\n", err: "" });
  const made = await tollgate("account", "create", "alice", "--plan", "pro");
  assert.deepEqual(made, { status: 0, out: "Created the account alice with the plan pro.\n", err: "" });
  const again = await tollgate("account", "create", "alice", "--plan", "pro");
  assert.equal(again.status, 0);
  assert.match(again.out, /already exists/);
  await tollgate("account", "create", "bob-with-a-long-name");

  const listed = await tollgate("account", "list");
  const lines = listed.out.split("\n");
  assert.match(lines[0] as string, /^NAME +PLAN +STATUS +BALANCE USD +AVAILABLE USD +SPENT USD +CREATED +LABELS$/);
  assert.match(lines[1] as string, /^alice +pro +normal +0\.00 +0\.00 +0\.00 +\d{4}-/);
  assert.match(lines[2] as string, /^bob-with-a-long-name +free /);
  assert.equal(lines[1]?.indexOf("pro"), lines[2]?.indexOf("free"), "columns are aligned");

  assert.match((await tollgate("account", "show", "alice")).out, /^Name +alice\n[\s\S]*^Balance USD +0\.00$/m);
  const moved = await tollgate("account", "set-plan", "alice", "free");
  assert.equal(moved.out, "The account alice is on the plan free.\n");
  const given = await tollgate("account", "adjust", "alice", "--usd", "2.00", "--id", "adj_1", "--note", "goodwill");
  assert.equal(given.out, "Adjusted alice by 2.00 USD. The balance is 2.00 USD.\n");
  const taken = await tollgate("account", "adjust", "alice", "--usd", "-1.50", "--id", "adj_2", "--note", "typo");
  assert.deepEqual(taken, { status: 0, out: "Adjusted alice by -1.50 USD. The balance is 0.50 USD.\n", err: "" });
});

test("account create says if the account that exists cannot be used", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  await tollgate("account", "suspend", "alice");
  const there = "The account alice already exists, with the plan free; nothing was changed.";
  assert.equal((await tollgate("account", "create", "alice")).out, `${there} It is suspended.\n`);
  await tollgate("account", "close", "alice", "--yes");
  const { out } = await tollgate("account", "create", "alice");
  assert.equal(out, `${there} It is closed, which is final: choose another name.\n`);
});

test("account: sessions, sign-out", async (t) => {
  const {
    tollgate,
    console: { store },
  } = await startGateway(t);
  await tollgate("account", "create", "alice");
  assert.equal((await tollgate("account", "sessions", "alice")).out, "Nobody is signed in to the account alice.\n");
  const { tag } = (await store.findAccount("alice")) ?? assert.fail();
  const kept = JSON.stringify({ way: "link", from: "192.0.2.7", agent: "" });
  await store.keepSignIn(tag, { kind: "session", id: "a", data: kept, lastsMs: 60_000 });
  const passkey = { credential: "c", key: "k", counter: 0, transports: [], synced: true, name: "Laptop", addedAtMs: 0 };
  await store.keepSignIn(tag, { kind: "passkey", id: "b", data: JSON.stringify(passkey) });
  const { out } = await tollgate("account", "sessions", "alice");
  assert.match(out, /^passkey Laptop, last used never\nsession by link from 192\.0\.2\.7, \S+ to \S+\n$/);
  const gone = await tollgate("account", "sign-out", "alice");
  assert.equal(gone.out, "The account alice: 1 session ended, 0 links revoked, 0 passkeys removed.\n");
  const all = await tollgate("account", "sign-out", "alice", "--passkeys");
  assert.equal(all.out, "The account alice: 0 sessions ended, 0 links revoked, 1 passkey removed.\n");
  assert.match((await tollgate("audit")).out, /Done: end all sessions of the console of alice; passkeys removed/);
});

test("account: rename, label, suspend, resume, close", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  const words = async (...argv: string[]) => {
    const { status, out, err } = await tollgate("account", ...argv);
    return status === 0 ? out : `${status} ${err}`;
  };
  assert.equal(await words("rename", "alice", "bob"), "The account alice is now named bob.\n");
  assert.equal(
    await words("label", "bob", "team=red", "no=47=11"),
    "The account bob has the labels: no=47=11, team=red.\n",
  );
  assert.match(await words("list", "--label", "team=red"), /^bob +free +normal .* no=47=11, team=red$/m);
  assert.match(await words("show", "bob"), /^Labels +no=47=11, team=red$/m);
  assert.equal(await words("list", "--label", "team=blue"), "No accounts.\n");
  assert.equal(await words("label", "bob", "no="), "The account bob has the labels: team=red.\n");
  assert.equal(await words("label", "bob", "team="), "The account bob has no labels.\n");
  assert.match(await words("label", "bob", "team"), /^2 A label must be NAME=VALUE/);
  assert.match(await words("suspend", "bob"), /bob is suspended.*tollgate account resume bob\n$/s);
  assert.match(await words("list", "--status", "suspended"), /^bob /m);
  assert.equal(
    await words("resume", "bob"),
    "The keys of the account bob work again, effective from their next request.\n",
  );
  assert.equal(
    await words("close", "bob"),
    "The account bob is permanently closed, and its keys are revoked. Its balance is 0.00 USD, of which running requests hold 0.00.\n",
  );
  assert.match(await words("resume", "bob"), /^1 Refused: The account `bob` is closed/);
  const { out } = await tollgate("audit", "--limit", "7");
  const happened = out
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/)[2]);
  assert.deepEqual(happened.slice(1, 5), [
    "Refused (account closed): resume the account bob",
    "Done: close the account bob",
    "Done: resume the account bob",
    "Done: suspend the account bob",
  ]);
  assert.equal(happened[5], "Done: set or remove 1 labels of the account bob");
});

test("account notify warns if the configuration has no receiver", async (t) => {
  const notices = {
    status: () => undefined,
    laneOf: () => undefined,
    test: async () => undefined,
    retry: async () => false,
  };
  const { tollgate } = await startGateway(t, { notices });
  await tollgate("account", "create", "alice");
  const set = await tollgate("account", "notify", "alice", "--below", "5");
  assert.equal(set.out, "A notice is sent when the balance of alice falls below 5.00 USD.\n");
  assert.match(set.err, /^But the configuration has no receiver: no notice is sent until it has one/);
  const asJson = await tollgate("account", "notify", "alice", "--below", "none", "--json");
  assert.deepEqual([asJson.status, asJson.err], [0, ""]);
  assert.equal(JSON.parse(asJson.out).notify_below_usd, null);
});

test("account list says how to get the next page", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  await tollgate("account", "create", "bob");
  const first = await tollgate("account", "list", "--limit", "1");
  const command = /^More accounts: (?:npx --no-install )?tollgate (account list --limit 1 --cursor .+)\n$/.exec(
    first.err,
  )?.[1];
  assert.ok(command);
  const second = await tollgate(...command.split(" "));
  assert.match(second.out, /^bob /m);
  assert.doesNotMatch(second.out, /^alice /m);
});

test("account invite warns about a link that only this machine can open", async (t) => {
  let origin = "";
  const { tollgate } = await startGateway(t, {
    invitation: { lastsMs: 60_000, consoleUrl: () => `${origin}/console` },
  });
  await tollgate("account", "create", "alice");
  for (const here of ["http://127.0.0.1:8787", "http://localhost:8787", "http://[::1]:8787"]) {
    origin = here;
    const { out, err } = await tollgate("account", "invite", "alice");
    assert.ok(out.startsWith(`${here}/console/sign-in#`), out);
    assert.match(
      err,
      /^It opens only in a browser on the gateway's own machine.* set console\.public_url in .*tollgate\.yaml/,
    );
  }
  origin = "https://gate.example";
  assert.equal((await tollgate("account", "invite", "alice")).err, "");
});

test("audit: the actions of operators, in words", async (t) => {
  const { tollgate } = await startGateway(t);
  assert.equal((await tollgate("audit")).out, "No writes since the gateway started.\n");
  const made = async (...argv: string[]) => /\b(?:key|code)_\w+/.exec((await tollgate(...argv)).out)?.[0];
  await tollgate("account", "create", "alice", "--plan", "pro");
  await tollgate("account", "set-plan", "alice", "free");
  await tollgate("account", "set-plan", "alice", "nope");
  await tollgate("topup", "--account", "alice", "--usd", "1.50", "--id", "pay-1");
  await tollgate("topup", "--account", "alice", "--usd", "1.50", "--id", "pay-1");
  await tollgate("account", "adjust", "alice", "--usd", "-0.25", "--id", "adj-1", "--note", "typo");
  const key = await made("key", "create", "--account", "alice", "--group", "big", "--idempotency-id", "first");
  await tollgate("key", "set-group", key as string, "cards");
  await tollgate("key", "revoke", key as string);
  for (const count of ["1", "2"]) await tollgate("code", "create", "--card", "day", "--count", count);
  const { out } = await tollgate("audit");
  const [heading, ...lines] = out
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  assert.deepEqual(heading, ["AT, UTC", "WHO", "WHAT HAPPENED", "REQUEST"]);
  for (const [at, who, , request] of lines) {
    assert.match(`${at} ${who} ${request}`, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d token:\w{8} from 127\.0\.0\.1 req_\w+$/);
  }
  assert.deepEqual(
    lines.map(([, , happened]) => happened),
    [
      "Refused (unknown card): create 2 codes for the card day",
      "Refused (unknown card): create 1 code for the card day",
      `Done: revoke the key ${key}`,
      `Done: move the key ${key} to the group cards`,
      `Done: create a key for alice in the group big; with the id first; the key is ${key}`,
      "Done: correct the balance of alice by -0.25 USD: typo (id adj-1)",
      "Already done, nothing changed: top up alice by 1.50 USD (payment pay-1)",
      "Done: top up alice by 1.50 USD (payment pay-1)",
      "Refused (unknown plan): give the account alice the plan nope",
      "Done: give the account alice the plan free",
      "Done: create the account alice with the plan pro",
    ],
  );
});

test("key: create, list, change, suspend, resume, revoke", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  assert.equal((await tollgate("key", "list", "--account", "alice")).out, "No keys.\n");
  const made = await tollgate("key", "create", "--account", "alice", "--group", "big");
  const [words, key] = made.out.split("\n");
  const id = /^Created the key (key_\w+) of account alice in group big\.$/.exec(words as string)?.[1];
  assert.ok(id);
  assert.equal(typeof readKey(key as string), "object");
  assert.match(made.err, /only this once/);

  const listed = await tollgate("key", "list", "--account", "alice");
  assert.match(
    listed.out,
    new RegExp(`^ID +NAME +GROUP +STATUS +EXPIRES +CREATED +LAST USED +BY +FROM\n${id} +- +big +normal +- +`),
  );
  assert.ok(!listed.out.includes(key as string));
  assert.match((await tollgate("key", "set-group", id, "cards")).out, /is in group cards/);
  const cards = (await tollgate("card", "list", "alice")).out;
  assert.equal((await tollgate("card", "list", "--account", "alice")).out, cards, "as keys are listed");
  assert.equal(
    (await tollgate("key", "rename", id, "Laptop of Alice")).out,
    `The key ${id} is named Laptop of Alice.\n`,
  );
  assert.match((await tollgate("key", "list", "--account", "alice")).out, /Laptop of Alice +cards +normal/);
  assert.equal((await tollgate("key", "rename", id)).out, `The key ${id} has no name now.\n`);
  const end = "2099-12-31T23:59:59.000Z";
  assert.equal((await tollgate("key", "expire", id, end)).out, `The key ${id} expires at ${end}.\n`);
  assert.equal((await tollgate("key", "expire", id, "never")).out, `The key ${id} does not expire.\n`);
  const typo = await tollgate("key", "expire", id, "tomorrow");
  assert.deepEqual([typo.status, typo.err.includes("30d or 12h")], [2, true]);
  const past = await tollgate("key", "expire", id, "2020-01-01T00:00:00Z");
  assert.deepEqual([past.status, past.err.includes("an instant in the future")], [1, true]);
  assert.equal((await tollgate("key", "limit", id)).out, `The key ${id} of account alice has no limits of its own.\n`);
  const limited = await tollgate("key", "limit", id, "--day", "5", "--requests", "60", "--from", "192.0.2.0/24, ::1");
  const figures = "5.00 USD a day; 60 requests per minute; from 192.0.2.0/24, ::1";
  assert.match(
    limited.out,
    new RegExp(`^The key ${id} of account alice\\.\nIts own limits: ${figures}\\.\n\nBUDGET .*\nday +5.00 +0.00`),
  );
  const more = await tollgate("key", "limit", id, "--total", "9", "--day", "none", "--cap");
  assert.match(more.out, /Its own limits: 5\.00 USD a day.*\nThe operator's caps: 9\.00 USD in all\.\n/);
  await tollgate("key", "limit", id, "--cap", "--concurrency", "4");
  for (const [typed, option] of [
    [["--total", "9.01"], "--total USD"],
    [["--concurrency", "5"], "--concurrency COUNT"],
  ] as const) {
    const above = await tollgate("key", "limit", id, ...typed);
    const command = new RegExp(`raise the cap first: .*tollgate key limit ${id} --cap ${option}\n`);
    assert.match(above.err, command);
    assert.doesNotMatch(above.err, /ask the operator/);
  }
  assert.match((await tollgate("key", "limit", id, "--day", "none")).out, /limits: 60 requests per minute; from/);
  assert.match((await tollgate("key", "limit", id, "--clear", "--cap")).out, /^(?!.*caps)/s);
  const wrong = await tollgate("key", "limit", id, "--requests", "many");
  assert.deepEqual([wrong.status, wrong.err.includes("--requests must be a whole number above 0, or none")], [2, true]);
  for (const [words, option] of [
    [["key", "limit", id, "--day", "25,00"], "--day must be an amount of US dollars above 0, such as 25.00, or none."],
    [["key", "limit", id, "--day", "null"], "--day must be"],
    [["account", "limit", "alice", "--month", "0"], "--month must be an amount of US dollars above 0"],
    [["account", "notify", "alice", "--below", "5,0"], "--below must be an amount of US dollars of 0 or more"],
  ] as const) {
    const bad = await tollgate(...words);
    assert.deepEqual([bad.status, bad.err.includes(option)], [2, true], bad.err);
  }
  assert.equal((await tollgate("key", "limit", id, "--from", "10.0.0.1/8")).status, 1);
  assert.match(
    (await tollgate("account", "limit", "alice", "--month", "40")).out,
    /^Over all keys of the account alice:\n\nBUDGET .*\nmonth +40\.00 +0\.00 +0\.00 +40\.00 /,
  );
  assert.equal((await tollgate("account", "limit", "alice", "--clear")).out, "The account alice has no budget.\n");
  const rotated = await tollgate("key", "rotate", id, "--overlap", "30m");
  const [said, value] = rotated.out.split("\n");
  assert.match(said as string, new RegExp(`^The key ${id} has a new value; the old one works until \\S+Z\\.$`));
  assert.equal(typeof readKey(value as string), "object");
  assert.match(rotated.err, /only this once/);
  const atOnce = await tollgate("key", "rotate", id, "--overlap", "0");
  assert.ok(atOnce.out.startsWith(`The key ${id} has a new value; the old one no longer works.\n`), atOnce.out);
  assert.equal((await tollgate("key", "rotate", id, "--overlap", "soon")).status, 2);
  assert.match((await tollgate("key", "suspend", id)).out, /is suspended.*tollgate key resume \S+\w\n$/s);
  assert.match((await tollgate("key", "list", "--account", "alice")).out, / cards +suspended /);
  const found = async (...filter: string[]) => (await tollgate("key", "list", "--account", "alice", ...filter)).out;
  assert.match(await found("--status", "suspended", "--group", "cards"), new RegExp(id));
  assert.equal(await found("--status", "normal"), "No keys.\n");
  assert.equal(await found("--search", "Laptop"), "No keys.\n");
  assert.match(
    (await tollgate("key", "list", "--account", "alice", "--status", "gone")).err,
    /normal, suspended, revoked/,
  );
  assert.match((await tollgate("account", "list", "--search", "LIC")).out, /alice/);
  assert.equal((await tollgate("account", "list", "--search", "bob")).out, "No accounts.\n");
  const sheet = await tollgate("key", "list", "--account", "alice", "--format", "csv");
  assert.match(
    sheet.out,
    new RegExp(`^id,name,group,status,expires_at,created_at,used_at,used_by,used_from\r\n${id},,cards,suspended,,`),
  );
  assert.match(
    (await tollgate("account", "list", "--format", "csv")).out,
    /^name,plan,status,[^\n]*\r\nalice,free,normal,/,
  );
  for (const list of [["account", "list"], ["key", "list", "--account", "alice"], ["code", "list"], ["audit"]]) {
    const [formatted, global] = [await tollgate(...list, "--format", "json"), await tollgate(...list, "--json")];
    assert.deepEqual(JSON.parse(formatted.out).items, JSON.parse(global.out).items, list.join(" "));
  }
  const verified = await tollgate("ledger", "verify", "--format", "csv");
  assert.match(verified.out, /^account,outcome,lines,[^\n]*\r\nalice,balanced,0,/);
  assert.equal(JSON.parse((await tollgate("ledger", "verify", "--format", "json")).out).accounts, 1);
  assert.match((await tollgate("code", "list", "--format", "csv")).out, /^id,card,[^\n]*\r\n$/);
  assert.match((await tollgate("audit", "--format", "csv")).out, /^at,who,[^\n]*\r\n/);
  assert.match((await tollgate("key", "resume", id)).out, /works again/);
  assert.match((await tollgate("key", "revoke", id)).out, /is permanently revoked/);
  assert.match((await tollgate("key", "list", "--account", "alice")).out, / cards +revoked /);
});

test("topup and ledger show", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  assert.equal((await tollgate("ledger", "show", "--account", "alice")).out, "No ledger lines.\n");
  const topup = ["topup", "--account", "alice", "--usd", "10.00", "--id", "pay_1"];
  assert.equal((await tollgate(...topup)).out, "Topped up alice by 10.00 USD. The balance is 10.00 USD.\n");
  const again = await tollgate(...topup);
  assert.equal(again.status, 0);
  assert.equal(again.out, "The id pay_1 was already counted; nothing was changed. The balance is 10.00 USD.\n");
  await tollgate("topup", "--account", "alice", "--usd", "5", "--id", "pay_2");

  const shown = await tollgate("ledger", "show", "--account", "alice");
  assert.match(shown.out, /^SEQ +AT +KIND +USD +FROM +TO +BALANCE USD +MODEL +REFERENCE +NOTE\n/);
  assert.match(shown.out, /^ +1 .* topup +10\.00 .* pay_1 /m);
  assert.match(shown.out, /^ +2 .* topup +5\.00 .* 15\.00 .* pay_2 /m);
  const newest = await tollgate("ledger", "show", "--account", "alice", "--last", "1");
  assert.match(newest.out, /^ *SEQ[^\n]*\n *2 [^\n]*pay_2[^\n]*\n$/);
  assert.match(
    newest.err,
    /Older lines: (?:npx --no-install )?tollgate ledger show --account alice --last 1 --before 2\n/,
  );
  const recent = await tollgate("ledger", "show", "--account", "alice", "--since", "1h", "--last", "5");
  assert.match(recent.out, / 2 [^\n]*\n *1 /);
  assert.equal(
    (await tollgate("ledger", "show", "--account", "alice", "--since", "2099-01-01T00:00:00Z")).out,
    "No ledger lines.\n",
  );
  for (const wrong of [
    ["--last", "1", "--after", "1"],
    ["--since", "soon"],
  ]) {
    assert.equal((await tollgate("ledger", "show", "--account", "alice", ...wrong)).status, 2, wrong.join(" "));
  }
  const sheet = await tollgate("ledger", "show", "--account", "alice", "--last", "1", "--format", "csv");
  assert.match(sheet.out, /^seq,at,kind,[^\n]*\r\n2,[^\n]*,pay_2,[^\n]*\r\n$/);
  assert.equal(
    (await tollgate("ledger", "show", "--account", "alice", "--last", "1", "--attempts")).out,
    "No attempts.\n",
  );
  const page = await tollgate("ledger", "show", "--account", "alice", "--limit", "1");
  assert.match(page.err, /--account alice --limit 1 --after 1\n$/);
  const rest = await tollgate("ledger", "show", "--account", "alice", "--after", "1");
  assert.doesNotMatch(rest.out, /pay_1/);
  assert.match(rest.out, /pay_2/);
});
