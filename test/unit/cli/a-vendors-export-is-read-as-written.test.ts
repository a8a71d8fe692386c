// Vendors' exports are read by day and model; any other file is refused with its line and the reason.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { CliFailure } from "../../../src/cli/failure.ts";
import { readColumnNames, readCost, readCount, readInstant } from "../../../src/cli/invoice/columns.ts";
import { readInvoice } from "../../../src/cli/invoice/invoice.ts";

const dir = mkdtempSync(join(tmpdir(), "tollgate-invoice-"));
after(() => rmSync(dir, { recursive: true, force: true }));
let files = 0;

async function read(text: string | Buffer, options: { columns?: string; since?: string; until?: string } = {}) {
  files += 1;
  const path = join(dir, `${files}.csv`);
  writeFileSync(path, text);
  const { columns, since, until } = options;
  const names = columns === undefined ? new Map() : readColumnNames(columns);
  const { byDay, tells } = await readInvoice(path, { columns: names, since, until });
  const rows = [...byDay].flatMap(([day, models]) =>
    [...models].map(([model, { input, output, cost }]) => `${day} ${model} ${input} ${output} ${cost}`),
  );
  return { rows: rows.sort(), tells };
}

async function refusedFor(text: string | Buffer, reason: RegExp, options: Parameters<typeof read>[1] = {}) {
  await assert.rejects(read(text, options), (error) => {
    assert.ok(error instanceof CliFailure, String(error));
    assert.equal(error.exitStatus, 2);
    assert.match(error.message, reason);
    return true;
  });
}

const OF_VENDORS: Readonly<Record<string, { text: string; rows: string[]; tells: string[] }>> = {
  "Anthropic's usage": {
    text: `usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,web_search_count,inference_geo,speed
2026-08-05,big-1,App,Default,standard,≤ 200k,46981,15969,10,5,16932,0,global,
2026-08-05,big-1,Other,Default,standard,> 200k,19,0,0,0,68,0,global,
`,
    rows: ["2026-08-05 big-1 62984 17000 0"],
    tells: ["input", "output"],
  },
  "Anthropic's cost": {
    text: `usage_date_utc,model,token_type,cost_usd
2026-08-05,Big 1,input_no_cache,0.14
2026-08-05,Big 1,output,"1,000.0000000004"
`,
    rows: ["2026-08-05 Big 1 0 0 1000140000000"],
    tells: ["cost"],
  },
  "a hand-made table": {
    text: "Day,Model,Input,Output,Cost\n2026-08-05,big-1,10,5,0.25\n",
    rows: ["2026-08-05 big-1 10 5 250000000"],
    tells: ["input", "output", "cost"],
  },
  "OpenAI's usage": {
    text: `start_time,end_time,start_time_iso,end_time_iso,num_model_requests,model,input_tokens,output_tokens,input_cached_tokens
1790553600,1790640000,2026-09-28T00:00:00+00:00,2026-09-29T00:00:00+00:00,5,big-1-2026-01-01,1000,500,800
1790640000,1790726400,2026-09-29T00:00:00+00:00,2026-09-30T00:00:00+00:00,,,,,
`,
    rows: ["2026-09-28 big-1-2026-01-01 1000 500 0"],
    tells: ["input", "output"],
  },
  "OpenAI's costs": {
    text: `start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,quantity,quantity_unit,line_item,user_id
1790553600,1790640000,2026-09-28T00:00:00+00:00,2026-09-29T00:00:00+00:00,1.2e-05,usd,4,,"big-1, input",
1790553600,1790640000,2026-09-28T00:00:00+00:00,2026-09-29T00:00:00+00:00,0.5,usd,9,,"big-1, output",
1790640000,1790726400,2026-09-29T00:00:00+00:00,2026-09-30T00:00:00+00:00,,,,,,
`,
    rows: ["2026-09-28 big-1 0 0 500012000"],
    tells: ["cost"],
  },
  "OpenRouter's activity": {
    text: `cost_total,cost_cache,tokens_prompt,tokens_completion,provider_name,model_permaslug,app_name,created_at
0.01,0.0,100,200,one,vendor/big-1,a,2026-03-30 23:37:51.271
0.02,-0.005,150,250,two,vendor/big-1,b,2026-03-31 00:00:00.000
`,
    rows: ["2026-03-30 vendor/big-1 100 200 10000000", "2026-03-31 vendor/big-1 150 250 20000000"],
    tells: ["input", "output", "cost"],
  },
  "Azure's costs": {
    text: `invoiceSectionName,date,meterName,quantity,costInBillingCurrency,billingCurrency
main,08/31/2026,big-1 Inp,12,4.5,USD
`,
    rows: ["2026-08-31 big-1 Inp 0 0 4500000000"],
    tells: ["cost"],
  },
  "Google's costs, below its lines about the account": {
    text: `Invoice number,X-1,
Currency,USD,
"Total amount due","$5,000.72",
Service description,SKU description,Usage start date,Usage end date,Usage amount,Unrounded cost ($),Cost ($)
Vertex AI,big-1 input,2026-08-01,2026-08-01,7,0.0700001,0.07
Vertex AI,big-1 input,2026-08-02,2026-08-02,7,(0.01),-0.01
`,
    rows: ["2026-08-01 big-1 input 0 0 70000100", "2026-08-02 big-1 input 0 0 -10000000"],
    tells: ["cost"],
  },
};

for (const [name, { text, rows, tells }] of Object.entries(OF_VENDORS)) {
  test(`${name}; with line feeds, carriage returns, a byte-order mark, as UTF-16`, async () => {
    for (const form of [
      text,
      text.replaceAll("\n", "\r\n"),
      `\uFEFF${text.replaceAll("\n", "\n\n")}`,
      text.trimEnd(),
      Buffer.from(`\uFEFF${text}`, "utf16le"),
    ]) {
      assert.deepEqual(await read(form), { rows, tells });
    }
  });
}

test("columns may be given by the file's own names in any case, and several are added up", async () => {
  const text = 'Tag;x,Modell,Rein,Dazu,Raus,Preis\n2026-08-01,m,1,"2,000",3,$4\n2026-08-03,m,1,0,0,0\n';
  const columns = "date=tag;X, model=Modell ,input=Rein+Dazu,output=raus,cost=Preis";
  assert.deepEqual((await read(text, { columns })).rows, ["2026-08-01 m 2001 3 4000000000", "2026-08-03 m 1 0 0"]);
  const until = { columns, until: "2026-08-02" };
  assert.deepEqual((await read(text, until)).rows, ["2026-08-01 m 2001 3 4000000000"]);
  assert.deepEqual((await read(text, { columns, since: "2026-08-02" })).rows, ["2026-08-03 m 1 0 0"]);
  await refusedFor(text, /no heading was found: no column "Nix"/, { columns: "date=Nix,model=Modell,input=Rein" });
  for (const wrong of ["date", "date=", "colour=x", "date=a,date=b", "input=a+", "beside=x", ""]) {
    assert.throws(() => readColumnNames(wrong), CliFailure, wrong);
  }
});

test("cells may be separated by semicolons or tabs, and then a comma in a number is refused as ambiguous", async () => {
  const rows = ["2026-08-05 big-1 10 5 250000000"];
  const bare = "Kontoauszug;August, 2026\nDay;Model;Input;Output;Cost\n2026-08-05;big-1;10;5;0.25\n";
  assert.deepEqual((await read(bare)).rows, rows);
  assert.deepEqual((await read(bare.replaceAll(";", "\t"))).rows, rows);
  const quoted = bare.replaceAll(/[^;\n]+/g, (cell) => `"${cell}"`);
  assert.deepEqual((await read(quoted)).rows, rows);
  const utf16 = Buffer.from(`\ufeff${bare.replaceAll(";", "\t")}`, "utf16le");
  assert.deepEqual((await read(utf16)).rows, rows);
  await refusedFor(
    bare.replace("0.25", "0,25"),
    /, line 3: the cost "0,25" is ambiguous: its comma may separate decimals/,
  );
  await refusedFor(bare.replace("10;", "1,000;"), /, line 3: the input "1,000" is ambiguous/);
  await refusedFor(bare.replace("Day", "Tag"), /no heading was found: no column of the date and the model/);
});

test("a file that is not an export is refused with its line and the reason", async () => {
  const heading = "date,model,input_tokens,cost_usd\n";
  const good = "2026-08-01,m,1,1\n";
  for (const [text, reason] of [
    ["", /no heading was found: no lines\. Name the columns/],
    ["a,b,c\n1,2,3\n", /no heading was found: no column of the date and the model/],
    ["date,model\n2026-08-01,m\n", /no heading was found: no column of input tokens, output tokens or cost/],
    [`${heading}${good}2026-08-01,m,1\n`, /, line 3: it has 3 cells, the heading has 4\.$/],
    [`${heading}${good}\n\n2026-08-01,m,x,1\n`, /, line 5: the input "x" is not a whole number of tokens\.$/],
    [`${heading}2026-08-01,m,1.5,1\n`, /, line 2: the input "1\.5" is not/],
    [`${heading}2026-08-01,m,-1,1\n`, /, line 2: the input "-1" is not/],
    [`${heading}2026-08-01,m,1,"1,5"\n`, /, line 2: the cost "1,5" is not an amount of US dollars/],
    [`${heading}2026-08-01,m,1,€ 3\n`, /, line 2: the cost "€ 3" is not/],
    [`${heading}yesterday,m,1,1\n`, /, line 2: the date "yesterday" is not a day or an instant/],
    [`${heading}31/08/2026,m,1,1\n`, /, line 2: the date "31\/08\/2026" is not/],
    [`${heading}2026-02-30,m,1,1\n`, /, line 2: the date "2026-02-30" is not/],
    [`${heading},m,1,1\n`, /, line 2: the date "" is not/],
    [`${heading}2026-08-01,,1,1\n`, /, line 2: it has usage but no model\.$/],
    [`${heading}2026-08-01,${"m".repeat(257)},1,1\n`, /, line 2: the model "m+" is not a name of up to 256/],
    [`${heading}${good}2026-08-01,"m,1,1\n${good}`, /, line \d: a quote that opens here is never closed\.$/],
    [`${heading}2026-08-01,m"m,1,1\n`, /, line 2: there is a quote inside a cell/],
    [`${heading}2026-08-01,"m"m,1,1\n`, /, line 2: a closing quote is not followed by/],
    [`${heading}2026-08-01,"${"m".repeat(1_100_000)}",1,1\n`, /, line \d: a row has more than 1000000 characters/],
    ["date,date,model,cost\n2026-08-01,2026-08-01,m,1\n", /, line 1: The column "date" occurs twice\.$/],
    ["date,model,cost,currency\n2026-08-01,m,1,EUR\n", /, line 2: the currency "EUR" is not USD\.$/],
    [
      "Usage start date,Usage end date,model,cost\n2026-08-01,2026-08-31,m,1\n",
      /, line 2: it covers several days, from 2026-08-01 to 2026-08-31; export by day\.$/,
    ],
  ] as const) {
    await refusedFor(text, reason);
  }
  const nowhere = join(dir, "nowhere.csv");
  await assert.rejects(
    readInvoice(nowhere, { columns: new Map() }),
    /^CliFailure: The file .*nowhere\.csv does not exist\.$/,
  );
  await assert.rejects(readInvoice(dir, { columns: new Map() }), /is a folder\.$/);
});

test("days, counts and amounts are read if they are unambiguous, and refused otherwise", () => {
  const day = Date.parse("2026-08-31T00:00:00Z");
  for (const [text, at] of [
    ["2026-08-31", day],
    ["8/31/2026", day],
    ["2026-08-31T02:00:00+02:00", day],
    ["2026-08-30 19:00:00-0500", day],
    ["2026-08-31 00:00:00 UTC", day],
    ["2026-08-31T00:00", day],
    [`${day / 1_000}`, day],
    [`${day}`, day],
    ["2026-13-01", undefined],
    ["2026-8-31", undefined],
    ["2026-08-31T25:00:00Z", undefined],
    ["Aug 31, 2026", undefined],
    ["", undefined],
  ] as const) {
    assert.equal(readInstant(text), at, text);
  }
  for (const [text, count] of [
    ["", 0],
    ["12", 12],
    ["1,234,567", 1_234_567],
    ["12.0", 12],
    ["12.", undefined],
    ["1,23", undefined],
    ["1,2345", undefined],
    ["12 000", undefined],
    ["99999999999999999", undefined],
    ["1e3", undefined],
  ] as const) {
    assert.equal(readCount(text), count, text);
  }
  const usd = 10n ** 15n;
  for (const [text, cost] of [
    ["", 0n],
    ["1", usd],
    ["$1,234.50", 1_234n * usd + usd / 2n],
    ["-$0.5", -usd / 2n],
    ["$-0.5", -usd / 2n],
    ["(0.5)", -usd / 2n],
    [".5", usd / 2n],
    ["USD 2", 2n * usd],
    ["2 USD", 2n * usd],
    ["1.2e-05", 12_000_000_000n],
    ["1E+2", 100n * usd],
    ["0.0000000000000001", 0n],
    ["(-1)", undefined],
    ["--1", undefined],
    ["1.2.3", undefined],
    ["1.234,56", undefined],
    ["1e99", undefined],
    ["1e-9999", undefined],
    ["NaN", undefined],
    [".", undefined],
    ["1234567890123456", undefined],
  ] as const) {
    assert.equal(readCost(text), cost, text);
  }
});

test("very many rows are added up without losing the smallest costs", async () => {
  const rows = Array.from({ length: 100_000 }, (_, at) => `2026-08-0${(at % 3) + 1},m${at % 2},1,2,0.0000000001`);
  const { rows: read1 } = await read(`date,model,input_tokens,output_tokens,cost\n${rows.join("\n")}\n`);
  assert.equal(read1.length, 6);
  const totals = read1.map((row) => row.split(" ").slice(2).map(Number));
  assert.equal(
    totals.reduce((sum, [input = 0]) => sum + input, 0),
    100_000,
  );
  for (const [input = 0, output, cost] of totals) {
    assert.equal(output, 2 * input);
    assert.equal(cost, Math.round(input / 10));
  }
});
