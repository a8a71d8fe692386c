/**
 * Charges, cost, absorbed amounts and margin, and their comparison with a vendor's export, through a whole gateway. The
 * model costs its clients 1 USD (input) and 10 USD (output) per million tokens, times two in this group; it costs the
 * operator 0.50 and 5 at the upstream east, which is tried first, and 0.80 and 8 at west. Every answer has 1000 tokens
 * in and 100 out; the question of a failed attempt is estimated at 20 tokens.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { utcDay } from "../../../../src/values/time.ts";
import {
  type ConfigPlaces,
  type GatewayHere,
  settledMetrics,
  startGatewayHere,
  type TestAccount,
  testConfig,
} from "../../../rig/gateway.ts";
import { ask, assertAtRest, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { tollgate } from "./rig.ts";

const duo = (places: ConfigPlaces): string => {
  // Both upstreams fail more often in a row than a default server may before it is ejected.
  const health = { failures: 1000, failure_percent: 100 };
  const server = { protocol: "chat", base_url: places.upstreamUrl, health } as const;
  return testConfig(places, {
    upstreams: { east: { ...server, api_key: "canary-east" }, west: { ...server, api_key: "canary-west" } },
    models: {
      duo: {
        plans: ["free"],
        price: { input: "1", output: "10" },
        context_tokens: 200000,
        max_output_tokens: 32000,
        routes: [
          { upstream: "east", model: "vendor/duo-east", cost: { input: "0.5", output: "5" } },
          { upstream: "west", priority: 1, cost: { input: "0.8", output: "8" } },
        ],
      },
    },
    groups: { twice: { kind: "pay_per_use", models: ["duo"], multiplier: "2.0" } },
  });
};

const ANSWERS = { usage: { input: 1_000, output: 100 } };
const RESET = { fault: { resetBeforeHeaders: true } };

const dir = mkdtempSync(join(tmpdir(), "tollgate-earned-"));
let here: GatewayHere;
let started: GatewayHere | undefined;
let account: TestAccount;
let day = "";

async function settled(protocol: (typeof PROTOCOL_LIST)[number], ...behaviors: object[]): Promise<number> {
  for (const behavior of behaviors) here.simulator.program(behavior);
  const reply = await ask(here, protocol, account.key, { model: "duo" });
  await reply.text();
  await assertAtRest(here, account);
  here.simulator.clearPrograms();
  return reply.status;
}

before(async () => {
  // All requests must be on the same day: if midnight passes in between, start again with another gateway.
  do {
    await started?.close();
    started = await startGatewayHere({ config: duo });
    here = started;
    day = utcDay(Date.now());
    account = await here.account({ group: "twice", usd: "1" });
    for (const protocol of PROTOCOL_LIST) assert.equal(await settled(protocol, ANSWERS), 200);
    assert.equal(await settled("chat", RESET, ANSWERS), 200);
    assert.equal(await settled("chat", RESET, RESET), 403);
  } while (utcDay(Date.now()) !== day);
});
after(async () => {
  await here.close();
  rmSync(dir, { recursive: true, force: true });
});

const HEADING =
  "usd,cost_usd,absorbed_usd,margin_usd,requests,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,reasoning_tokens";

async function usage(by: string): Promise<string[]> {
  const ran = await tollgate(
    here,
    "usage",
    "--by",
    by,
    "--account",
    account.name,
    "--since",
    day,
    "--until",
    day,
    "--format",
    "csv",
  );
  assert.equal(ran.status, 0, ran.err);
  const [heading, ...rows] = ran.out.trim().split("\r\n");
  assert.equal(heading, `${by},${HEADING}`);
  return rows;
}

test("usage shows what was charged, what it cost, what was absorbed, and the margin", async () => {
  const whole = "0.016,0.004636,0.000036,0.011364,4,4000,0,0,400,0";
  assert.deepEqual(await usage("model"), [`duo,${whole}`]);
  assert.deepEqual(await usage("group"), [`twice,${whole}`]);
  assert.deepEqual(await usage("account"), [`${account.name},${whole}`]);
  assert.deepEqual(await usage("day"), [`${day},${whole}`]);
  // Grouped by upstream, the tokens of failed attempts are included, because they may be on its bill.
  assert.deepEqual(await usage("upstream"), [
    "east,0.012,0.00302,0.00002,0.00898,5,3040,0,0,300,0",
    "west,0.004,0.001616,0.000016,0.002384,2,1020,0,0,100,0",
  ]);
  const table = await tollgate(here, "usage", "--by", "upstream");
  assert.match(table.out, /^UPSTREAM +CHARGED USD +COST USD +ABSORBED USD +MARGIN USD +REQUESTS /m);
  assert.match(table.out, /^total +0\.016 +0\.004636 +0\.000036 +0\.011364 +7 +4060 /m);
  const { total } = JSON.parse((await tollgate(here, "usage", "--by", "upstream", "--format", "json")).out);
  assert.equal(total.margin_usd, "0.011364");
});

test("the ledger's lines agree, and verification finds nothing", async () => {
  const lines = await here.store.readLedger(account.tag, 0, 100);
  const sum = (amounts: bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
  const cost = (line: (typeof lines)[number]) => BigInt(JSON.parse(line.memo).cost);
  const charges = lines.filter(({ kind }) => kind === "usage");
  const absorbed = lines.filter(({ kind }) => kind === "absorbed");
  assert.equal(sum([...charges, ...absorbed].map(cost)), 4_636_000n);
  assert.equal(sum(absorbed.map(({ amount }) => amount)), 36_000n);
  const ran = await tollgate(here, "ledger", "verify");
  assert.equal(ran.status, 0, ran.err);
});

test("metrics count the cost by group, model and upstream", async () => {
  const text = await settledMetrics(here.adminUrl);
  const value = (upstream: string) =>
    Number(
      new RegExp(`^tollgate_cost_usd_total\\{group="twice",model="duo",upstream="${upstream}"\\} (\\S+)$`, "m").exec(
        text,
      )?.[1],
    );
  assert.ok(Math.abs(value("east") - 0.00302) < 1e-9, text.slice(0, 200));
  assert.ok(Math.abs(value("west") - 0.001616) < 1e-9);
});

test("a client that asks for its own usage does not see what it cost", async () => {
  const reply = await fetch(`${here.url}/v1/usage`, { headers: { authorization: `Bearer ${account.key}` } });
  assert.equal(reply.status, 200);
  const text = await reply.text();
  assert.match(text, /"usd":"0\.016"/);
  assert.doesNotMatch(text, /cost|margin|absorbed/);
});

let files = 0;
async function reconciled(text: string, ...more: string[]) {
  files += 1;
  const path = join(dir, `${files}.csv`);
  writeFileSync(path, text);
  return tollgate(here, "reconcile", "--from", path, "--upstream", "east", ...more);
}

const CSV = "date,model,input_tokens,output_tokens,cost_usd\r\n";

test("reconciling with an export that agrees is status 0, whatever the vendor calls the model", async () => {
  for (const model of ["vendor/duo-east", "duo-east-2026-01-31", "Duo East"]) {
    const ran = await reconciled(
      `${CSV}${day},${model},3000,200,$0.003\r\n${day}T23:59:59Z,${model},40,100,2e-5\r\n`,
      "--share",
      "0",
    );
    assert.deepEqual([ran.status, ran.err], [0, ""], ran.out);
    assert.match(ran.out, /Days and models compared: 1; different: 0, on 0 days\./);
  }
  const renamed = await reconciled(
    `${CSV}${day},Titel,3040,300,0.00302\r\n`,
    "--model",
    "Titel=vendor/duo-east",
    "--share",
    "0",
  );
  assert.equal(renamed.status, 0, renamed.err);
  const near = await reconciled(`${CSV}${day},duo-east,3100,300,0.00302\r\n`);
  assert.equal(near.status, 0, near.err);
});

test("days that differ by more than the tolerance are named, in both directions", async () => {
  const yesterday = utcDay(Date.parse(day) - 86_400_000);
  const rows = `${day},duo-east,3040,300,0.00302\r\n${yesterday},duo-east,10,5,0.001\r\n`;
  const ran = await reconciled(`${CSV}${rows}`);
  assert.equal(ran.status, 1);
  assert.deepEqual(ran.err.trim().split("\n"), [
    "Different by more than 2.00 %:",
    `${yesterday}, vendor/duo-east: input by 100.00 %, output by 100.00 %, cost_usd by 100.00 %.`,
  ]);
  assert.match(
    ran.out,
    new RegExp(`^${yesterday} +vendor/duo-east +cost_usd +0\\.001 +0\\.00 +0\\.001 +100\\.00 % +differs$`, "m"),
  );
  assert.match(ran.out, new RegExp(`^${day} +vendor/duo-east +input +3040 +3040 +0 +0\\.00 %$`, "m"));
  // Our days that the file lacks, within the requested days.
  const lacking = await reconciled(`${CSV}${yesterday},other,0,0,0\r\n`, "--since", yesterday, "--until", day);
  assert.equal(lacking.status, 1);
  assert.match(lacking.err, new RegExp(`${day}, vendor/duo-east: input by 100`));
  const dearer = await reconciled(`${CSV}${day},duo-east,3040,300,0.0031\r\n`, "--json");
  assert.equal(dearer.status, 1);
  assert.deepEqual(JSON.parse(dearer.out).differing, [{ day, model: "vendor/duo-east" }]);
  const sheet = await reconciled(`${CSV}${day},duo-east,3040,300,0.0031\r\n`, "--format", "csv");
  assert.equal(sheet.status, 1);
  assert.deepEqual(sheet.out.trim().split("\r\n").slice(0, 2), [
    "day,model,figure,theirs,ours,difference,share,differs",
    `${day},vendor/duo-east,input,3040,3040,0,0,false`,
  ]);
});

test("figures that no known column has are reported as not compared", async () => {
  const ran = await reconciled(`date,model,text,cost\n${day},duo-east,3040,0.00302\n`);
  assert.equal(ran.status, 0, ran.err);
  assert.match(ran.out, /Not compared, because no known column has it: input, output\./);
});

test("models in the export that this gateway did not use are reported, and differ if that is requested", async () => {
  const rows = `${day},duo-east,3040,300,0.00302\r\n${day},else,7,8,9\r\n`;
  const ran = await reconciled(`${CSV}${rows}`);
  assert.equal(ran.status, 0, ran.err);
  assert.match(ran.out, /Not compared, because the ledger has no entries for it: else, 7 input, 8 output, 9\.00 USD\./);
  assert.equal((await reconciled(`${CSV}${rows}`, "--all-models")).status, 1);
});

test("invalid options and files are status 2", async () => {
  const good = `${CSV}${day},duo-east,1,1,1\r\n`;
  for (const [text, more, reason] of [
    [`${CSV}${day},m,1,1\r\n`, [], /, line 2: it has 4 cells, the heading has 5\.$/m],
    [good, ["--share", "2"], /--share must be a number from 0 to 1/],
    [good, ["--share", "x"], /--share must be/],
    [good, ["--since", "2026-02-30"], /--since must be a day/],
    [good, ["--columns", "x"], /--columns must have a form like/],
    [good, ["--model", "x"], /--model must be THEIRS=OURS/],
    [good, ["--model", "=duo-east"], /--model must be THEIRS=OURS/],
    [good, ["--model", "duo-east="], /--model must be THEIRS=OURS/],
    [CSV, [], /no line has any usage/],
  ] as const) {
    const ran = await reconciled(text, ...more);
    assert.deepEqual([ran.status, ran.out], [2, ""], `${more}`);
    assert.match(ran.err, reason);
  }
  const nothing = await tollgate(here, "reconcile", "--from", join(dir, "1.csv"), "--upstream", "nobody");
  assert.match(nothing.out, /The ledger has no entries for it/);
  assert.equal(nothing.status, 1, "a mistyped upstream is not reported as a match");
  assert.match(nothing.err, /^Nothing was compared/);
});

test("a bill above an account's funds is absorbed at the model's price, and its cost is recorded as it is", async () => {
  const poor = await here.account({ group: "twice", usd: "0.003" });
  here.simulator.program(ANSWERS);
  const reply = await ask(here, "chat", poor.key, { model: "duo" });
  assert.equal(reply.status, 200, await reply.text());
  await assertAtRest(here, poor);
  const ran = await tollgate(here, "usage", "--by", "upstream", "--account", poor.name, "--format", "csv");
  // 0.004 were due. 0.001 of it is absorbed, for a cost of 0.001, which the 0.003 have paid.
  assert.equal(ran.out.split("\r\n")[1], "east,0.003,0.001,0.001,0.002,1,1000,0,0,100,0");
  const verified = await tollgate(here, "ledger", "verify");
  assert.equal(verified.status, 0, verified.err);
});
