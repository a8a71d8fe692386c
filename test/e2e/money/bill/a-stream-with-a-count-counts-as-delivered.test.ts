/**
 * ARCHITECTURE.md promise 3: a stream that ended with a count counts as delivered, even if it was empty, and the same
 * reply costs the same streamed and whole. Before this, these streams were not charged: output in a member that the
 * gateway did not know, a limit used up by reasoning, and a cache write of 200,000 tokens with `max_tokens: 1`.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Behavior } from "../../../../src/simulator/server.ts";
import { formatUsd } from "../../../../src/values/money.ts";
import { type GatewayHere, settledMetrics, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import {
  ask,
  assertAtRest,
  type Fields,
  framesOf,
  memoOf,
  recomputed,
  usageLines,
} from "../../protocol/whole/asking.ts";
import { asked, billed, DIRECTIONS, limited, pricedConfig } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const PICTURE = "data:image/png;base64,".padEnd(4_000, "A");
const USAGE = { input: 1_000, output: 1_300, reasoning: 0 };

/** Replies that show no text, and what they cost at 3 and 15 USD per million tokens. */
const REPLIES: Readonly<Record<string, readonly [Behavior, limit: number, usd: string]>> = {
  "an image in a member of its own": [
    { texts: [], extra: { images: [{ type: "image_url", image_url: { url: PICTURE } }] }, usage: USAGE },
    4_000,
    "0.0225",
  ],
  "content as a list": [
    { texts: [], extra: { content: [{ type: "text", text: "words" }] }, usage: USAGE },
    4_000,
    "0.0225",
  ],
  "an unknown member": [{ texts: [], extra: { new_modality: { frames: ["abcdef"] } }, usage: USAGE }, 4_000, "0.0225"],
  "no text because reasoning used up the limit": [
    { texts: [], stop: "length", usage: { input: 1_000, output: 4_000, reasoning: 4_000 } },
    4_000,
    "0.063",
  ],
  "a cache write with a limit of one token": [
    { texts: [], stop: "length", usage: { input: 10, cacheWrite: 200_000, output: 1 } },
    1,
    "0.750045",
  ],
};

for (const [client, upstream] of DIRECTIONS) {
  for (const [what, [behavior, limit, usd]] of Object.entries(REPLIES)) {
    test(`${client} on ${upstream}: ${what} costs the same streamed and whole`, async () => {
      for (const stream of [true, false]) {
        const account = await here.account();
        here.simulator.program({ ...behavior, ignoreLimit: true });
        const least = client === "responses" ? 16 : 1;
        await asked(here, client, account, limited(client, upstream, Math.max(limit, least), { stream }));
        const { line, memo } = await billed(here, account);
        assert.deepEqual(
          [formatUsd(line.amount), memo.counted, memo.ended],
          [usd, "upstream", "complete"],
          `${stream}`,
        );
      }
    });
  }
}

/** Disconnects after this many events. */
async function leftBehind(protocol: "chat" | "messages" | "responses", account: TestAccount, events: number) {
  const leaving = new AbortController();
  const reply = await ask(here, protocol, account.key, { stream: true }, { signal: leaving.signal });
  let text = "";
  const reader = reply.body?.getReader();
  while (framesOf(text).filter(({ data }) => data !== "").length < events) {
    const piece = await reader?.read();
    if (!piece || piece.done) break;
    text += Buffer.from(piece.value).toString();
  }
  leaving.abort();
  await assertAtRest(here, account);
}

/** The number of events up to and including the one that holds the extra member. */
const EVENTS_WITH_EXTRA = { chat: 2, messages: 2, responses: 4 } as const;

for (const protocol of ["chat", "messages", "responses"] as const) {
  test(`${protocol}: output in an unknown member is delivered output: a client that disconnects after it is charged`, async () => {
    const account = await here.account();
    const said = "words that no watcher knows ".repeat(10);
    here.simulator.program({
      texts: [],
      extra: { new_modality: { said } },
      fault: { stallAfterEvents: EVENTS_WITH_EXTRA[protocol] },
    });
    await leftBehind(protocol, account, EVENTS_WITH_EXTRA[protocol]);
    const [line, ...more] = await usageLines(here, account);
    assert.deepEqual(more, []);
    assert.equal(line?.kind, "usage");
    assert.equal(memoOf(line).output, Math.ceil(said.length / 4));
    assert.equal(line?.amount, recomputed(line as never));
  });

  test(`${protocol}: bookkeeping events alone are not delivered output`, async () => {
    const account = await here.account();
    here.simulator.program({
      texts: [],
      extra: { id: "x", role: "assistant", index: 3, type: "t", obfuscation: "padding", status: "done", nothing: "" },
      fault: { stallAfterEvents: EVENTS_WITH_EXTRA[protocol] },
    });
    await leftBehind(protocol, account, EVENTS_WITH_EXTRA[protocol]);
    const lines = await usageLines(here, account);
    assert.ok(lines.every(({ kind }) => kind === "absorbed"));
    assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n);
  });
}

test("a client that disconnects after the count and before the last event is charged for the whole reply", async () => {
  const account = await here.account();
  const choices = [{ index: 0, delta: {}, finish_reason: "length" }];
  const chunk = (more: Fields) => ({
    data: { id: "c", object: "chat.completion.chunk", created: 1, model: "m", ...more },
  });
  const usage = { prompt_tokens: 200_000, completion_tokens: 1, total_tokens: 200_001 };
  here.simulator.program({
    frames: [
      chunk({ choices: [{ index: 0, delta: { role: "assistant" }, finish_reason: null }] }),
      chunk({ choices, usage }),
      { data: "[DONE]" },
    ],
    fault: { stallAfterEvents: 2 },
  });
  await leftBehind("chat", account, 2);
  const [line] = await usageLines(here, account);
  assert.deepEqual([line?.kind, formatUsd(line?.amount ?? 0n)], ["usage", "0.600015"]);
});

for (const [client, upstream] of DIRECTIONS) {
  test(`${client} on ${upstream}: a stream with neither output nor a count is absorbed as a stream without a count`, async () => {
    const account = await here.account();
    here.simulator.program({ texts: [], noUsage: true });
    await asked(here, client, account, limited(client, upstream, 4_000, { stream: true }));
    await assertAtRest(here, account);
    const [line, ...more] = await usageLines(here, account);
    assert.deepEqual([more.length, line?.debit, memoOf(line).ended], [0, "absorbed:no_output", "no_output"]);
    const [attempt] = memoOf(line).attempts as Fields[];
    assert.deepEqual([attempt?.paid_by, attempt?.why], ["absorbed", "no_output"]);
    const metrics = await settledMetrics(here.adminUrl);
    assert.match(metrics, /tollgate_absorbed_usd_total\{[^}]*cause="no_output"/);
    assert.doesNotMatch(metrics, /tollgate_absorbed_usd_total\{[^}]*cause="complete"/);
  });

  test(`${client} on ${upstream}: a whole reply with neither output nor a count is charged its input`, async () => {
    const account = await here.account();
    here.simulator.program({ texts: [], noUsage: true });
    await asked(here, client, account, limited(client, upstream, 4_000, { stream: false }));
    const { line, memo } = await billed(here, account);
    assert.deepEqual([memo.ended, memo.counted, memo.output], ["complete", "estimate", 0]);
    assert.equal(line.amount, recomputed(line as never));
    assert.ok(line.amount > 0n);
  });
}

/** Output of a chat server that messages and responses cannot carry. */
const UNSHOWN: Readonly<Record<string, Behavior>> = {
  "an empty thought": { text: "<think>" },
  sound: { texts: [], extra: { audio: { id: "a", data: "QUJD".repeat(1_000) } } },
};

for (const client of ["messages", "responses"] as const) {
  for (const [name, behavior] of Object.entries(UNSHOWN)) {
    test(`${client} on chat: ${name} without a count costs the same streamed and whole`, async () => {
      const charged = [];
      for (const stream of [false, true]) {
        const account = await here.account();
        here.simulator.program({ ...behavior, noUsage: true });
        await asked(here, client, account, limited(client, "chat", 4_000, { stream }));
        const { memo } = await billed(here, account);
        assert.equal(memo.ended, "complete");
        charged.push(memo.output);
      }
      assert.equal(charged[0], charged[1]);
      assert.ok(Number(charged[0]) > 0);
    });
  }
}
