/**
 * ARCHITECTURE.md promise 1 for content other than text: a hold covers what an image or a file costs by its bytes,
 * pages or pixels, so that concurrent requests cannot together spend more than the account has. Before, a file of any
 * size was held at 3,000 tokens: of twelve requests with one PDF of 250,000 tokens each, on a balance of 0.20 USD, ten
 * ran; the account paid 0.20 and the operator 7.30.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import {
  type ConfigPlaces,
  type GatewayHere,
  startGatewayHere,
  type TestAccount,
  testConfig,
} from "../../../rig/gateway.ts";
import { pdf } from "../../../rig/pdf.ts";
import { ask, assertAtRest, type Fields, memoOf, PROTOCOL_LIST, usageLines } from "./asking.ts";

const PRICE = { input: "3", cache_write: "3", cache_write_1h: "3", output: "15" };

function config(places: ConfigPlaces): string {
  const model = (upstream: string) => ({
    plans: ["free"],
    price: PRICE,
    context_tokens: 400000,
    routes: [{ upstream }],
  });
  const media_tokens = { image: 1600, image_max: 1600, file: 3000, file_max: 3000 };
  return testConfig(places, {
    models: {
      ...Object.fromEntries(PROTOCOL_LIST.map((protocol) => [`${protocol}-files`, model(`up-${protocol}`)])),
      "chat-figure": { ...model("up-chat"), media_tokens },
    },
  });
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** 250,000 tokens: on 55 pages, on one page, and compressed in the way most programs do it. */
const BOOK = "the quick brown fox jumps over the lazy dog ".repeat(17_046);
const PDFS = {
  "55 pages": pdf({ pages: 55 }),
  "55 pages in object streams": pdf({ pages: 55, objectStreams: true }),
  "one page of small print": pdf({ pages: 1, text: BOOK }),
} as const;

function withFile(protocol: Protocol, data: string): Fields {
  const url = `data:application/pdf;base64,${data}`;
  const part = {
    chat: { type: "file", file: { filename: "a.pdf", file_data: url } },
    messages: { type: "document", source: { type: "base64", media_type: "application/pdf", data } },
    responses: { type: "input_file", filename: "a.pdf", file_data: url },
  }[protocol];
  return turn(protocol, part);
}

function turn(protocol: Protocol, part: object): Fields {
  const content = [{ role: "user", content: [part] }];
  return protocol === "responses" ? { input: content } : { messages: content };
}

interface Outcome {
  readonly ran: number;
  readonly charged: number;
  readonly absorbed: number;
}

/** Twelve concurrent requests, each of which costs 250,000 tokens of input and a few of output. */
async function twelve(protocol: Protocol, account: TestAccount, fields: Fields): Promise<Outcome> {
  here.simulator.program({ text: "ok", usage: { input: 250_000, output: 20 } }, { times: 12 });
  const replies = await Promise.all(Array.from({ length: 12 }, () => ask(here, protocol, account.key, fields)));
  for (const reply of replies) await reply.text();
  const statuses = replies.map((reply) => reply.status);
  await assertAtRest(here, account);
  assert.deepEqual(
    [...new Set(statuses)].filter((status) => status !== 200 && status !== 403),
    [],
  );
  const lines = await usageLines(here, account);
  const sum = (kind: string) =>
    lines.filter((line) => line.kind === kind).reduce((total, line) => total + Number(line.amount), 0) / 1e9;
  const balance = Number((await here.store.getAccount(account.tag))?.balance ?? 0n);
  assert.ok(balance >= 0);
  return { ran: statuses.filter((status) => status === 200).length, charged: sum("usage"), absorbed: sum("absorbed") };
}

for (const protocol of PROTOCOL_LIST) {
  for (const [name, data] of Object.entries(PDFS)) {
    const fields = { ...withFile(protocol, data.toString("base64")), model: `${protocol}-files` };

    test(`${protocol}, ${name}: on 0.20 USD none of twelve runs, and nothing is charged or absorbed`, async () => {
      const account = await here.account({ usd: "0.20" });
      assert.deepEqual(await twelve(protocol, account, fields), { ran: 0, charged: 0, absorbed: 0 });
    });

    test(`${protocol}, ${name}: on 2.00 USD two of twelve run, and the account pays for both`, async () => {
      const account = await here.account({ usd: "2.00" });
      const { ran, charged, absorbed } = await twelve(protocol, account, fields);
      assert.deepEqual([ran, absorbed], [2, 0]);
      assert.ok(Math.abs(charged - 2 * 0.7503) < 1e-9, String(charged));
    });
  }
}

test("an operator's limit of 3,000 tokens per file is used as it is: ten of twelve run", async () => {
  const account = await here.account({ usd: "0.20" });
  const fields = { ...withFile("chat", PDFS["55 pages"].toString("base64")), model: "chat-figure", max_tokens: 500 };
  const { ran, charged, absorbed } = await twelve("chat", account, fields);
  assert.ok(ran >= 10, String(ran));
  assert.ok(Math.abs(charged - 0.2) < 1e-9 && absorbed > 7.2, `${charged} ${absorbed}`);
});

/** The hold of a request, in tokens of input, from the memo of a request that costs almost nothing. */
async function heldTokens(protocol: Protocol, fields: Fields): Promise<number> {
  const account = await here.account({ usd: "100" });
  here.simulator.program({ text: "ok", usage: { input: 10, output: 2 } });
  const reply = await ask(here, protocol, account.key, { model: `${protocol}-files`, ...fields });
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  await assertAtRest(here, account);
  const hold = BigInt(memoOf((await usageLines(here, account))[0]).hold as string);
  return Number((hold - 400n * 15_000n) / 3_000n);
}

test("a screenshot, a URL and a file behind a URL are held at what they can cost", async () => {
  const png = Buffer.alloc(400_000, 1);
  png.write("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 0, "latin1");
  png.writeUInt32BE(2_560, 16);
  png.writeUInt32BE(1_440, 20);
  const data = png.toString("base64");
  const screenshot = await heldTokens(
    "messages",
    turn("messages", { type: "image", source: { type: "base64", media_type: "image/png", data } }),
  );
  assert.ok(screenshot > 5_130 && screenshot < 5_300, String(screenshot));
  const address = await heldTokens(
    "chat",
    turn("chat", { type: "image_url", image_url: { url: "https://x.test/a.png" } }),
  );
  assert.ok(address > 16_384 && address < 16_500, String(address));
  const small = await heldTokens(
    "chat",
    turn("chat", { type: "image_url", image_url: { url: `data:image/png;base64,${data.slice(0, 400)}` } }),
  );
  assert.ok(small > 5_130 && small < 5_400, String(small));
  const file = await heldTokens(
    "responses",
    turn("responses", { type: "input_file", file_url: "https://x.test/a.pdf" }),
  );
  assert.equal(file, 400_000);
  const video = await heldTokens(
    "chat",
    turn("chat", { type: "video_url", video_url: { url: "https://x.test/a.mp4" } }),
  );
  assert.equal(video, 400_000);
});

test("a conversation that the upstream may shorten is held twice", async () => {
  const words = "some words ".repeat(3_000);
  const edits = (type: string) => ({
    context_management: { edits: [{ type }] },
    messages: [{ role: "user", content: words }],
  });
  const once = await heldTokens("messages", edits("clear_tool_uses_20250919"));
  const twice = await heldTokens("messages", edits("compact_20260112"));
  assert.ok(Math.abs(twice - 2 * once) <= 20, `${once} ${twice}`);
});
