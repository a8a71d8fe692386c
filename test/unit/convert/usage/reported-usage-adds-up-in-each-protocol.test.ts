/**
 * The usage that clients of each protocol get for each form of docs/usage-forms.md. The table there ("What the client
 * gets") has the figures (UPDATE_GOLDENS=1 writes them), and the sums of each protocol must be right.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test from "node:test";
import { type JsonObject, objectOf } from "../../../../src/values/json-object.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { framesOf } from "../translate/rig.ts";
import { streamedReply, type UsageGolden, usageGoldens, wholeReply } from "./usage-goldens.ts";

const PAGE = new URL("../../../../docs/usage-forms.md", import.meta.url);

/** Usage as a client of a protocol reads it. `input` is all input, and `output` includes the reasoning. */
interface ReportedUsage {
  readonly input: number;
  readonly cached: number;
  readonly written: number;
  readonly output: number;
  readonly reasoning: number;
}

const count = (value: unknown, name: string): number => {
  assert.ok(Number.isSafeInteger(value) && Number(value) >= 0, `${name} is ${value}`);
  return Number(value);
};
const orNone = (value: unknown, name: string) => (value === undefined || value === null ? 0 : count(value, name));

const READ: Readonly<Record<Protocol, (usage: JsonObject) => ReportedUsage>> = {
  chat(usage) {
    const input = count(usage.prompt_tokens, "prompt_tokens");
    const output = count(usage.completion_tokens, "completion_tokens");
    assert.equal(usage.total_tokens, input + output, "total_tokens is the sum");
    const details = objectOf(usage.prompt_tokens_details);
    const reasoning = orNone(objectOf(usage.completion_tokens_details)?.reasoning_tokens, "reasoning_tokens");
    const cached = orNone(details?.cached_tokens, "cached_tokens");
    const written = orNone(details?.cache_write_tokens, "cache_write_tokens");
    return { input, cached, written, output, reasoning };
  },
  messages(usage) {
    const cached = orNone(usage.cache_read_input_tokens, "cache_read_input_tokens");
    const written = orNone(usage.cache_creation_input_tokens, "cache_creation_input_tokens");
    const lifetimes = objectOf(usage.cache_creation);
    if (lifetimes) {
      const short = orNone(lifetimes.ephemeral_5m_input_tokens, "5m");
      assert.equal(short + orNone(lifetimes.ephemeral_1h_input_tokens, "1h"), written, "the lifetimes are the sum");
    }
    const input = count(usage.input_tokens, "input_tokens") + cached + written;
    const reasoning = orNone(objectOf(usage.output_tokens_details)?.thinking_tokens, "thinking_tokens");
    return { input, cached, written, output: count(usage.output_tokens, "output_tokens"), reasoning };
  },
  responses(usage) {
    const input = count(usage.input_tokens, "input_tokens");
    const output = count(usage.output_tokens, "output_tokens");
    assert.equal(usage.total_tokens, input + output, "total_tokens is the sum");
    const details = objectOf(usage.input_tokens_details);
    const reasoning = count(objectOf(usage.output_tokens_details)?.reasoning_tokens, "reasoning_tokens");
    const written = orNone(details?.cache_write_tokens, "cache_write_tokens");
    return { input, cached: count(details?.cached_tokens, "cached_tokens"), written, output, reasoning };
  },
};

/** The usage at the end of a stream. */
function usageOf(client: Protocol, text: string): JsonObject {
  const events = framesOf(text).filter(({ data }) => typeof data === "object");
  if (client === "responses") return objectOf(objectOf(events.at(-1)?.data.response)?.usage) ?? {};
  return objectOf(events.findLast(({ data }) => objectOf(data.usage) !== undefined)?.data.usage) ?? {};
}

/** The usage that a client gets, after checking its sums. Only chat clients can have several choices. */
function told(golden: UsageGolden, client: Protocol): ReportedUsage | undefined {
  if (golden.n !== undefined && client !== "chat") return undefined;
  const ways = [
    ...(golden.whole ? [wholeReply(golden, client).json.usage as JsonObject] : []),
    ...(golden.stream ? [usageOf(client, streamedReply(golden, client, 1_000_000).text)] : []),
  ].map((usage) => READ[client](usage));
  for (const way of ways) {
    assert.ok(way.cached + way.written <= way.input, "what was cached is a part of the input");
    assert.ok(way.reasoning <= way.output, "reasoning is a part of the output");
  }
  return ways.at(-1);
}

const figures = ({ input, cached, written, output, reasoning }: ReportedUsage) =>
  [input, cached, written, output, reasoning].join(" / ");

const rows: string[] = [];
for (const golden of usageGoldens()) {
  test(`${golden.name}: translated clients get the usage that is charged, with the sums of their protocol`, () => {
    const { tokens } = golden;
    const input = tokens.input + tokens.cached_input + tokens.cache_write + tokens.cache_write_1h;
    const cells: string[] = [];
    for (const client of PROTOCOL_NAMES) {
      if (client === golden.protocol) continue;
      const found = told(golden, client);
      cells.push(found === undefined ? "has one choice" : figures(found));
      if (found === undefined || golden.counted !== "upstream") continue;
      assert.equal(found.input, input, `${client}: input`);
      assert.equal(found.cached, tokens.cached_input, `${client}: cached`);
      assert.equal(found.written, tokens.cache_write + tokens.cache_write_1h, `${client}: written`);
      assert.equal(found.output, tokens.output, `${client}: output`);
    }
    const others = PROTOCOL_NAMES.filter((name) => name !== golden.protocol);
    const cellOf = (client: Protocol) => cells[others.indexOf(client)] ?? "unchanged";
    rows.push(`| \`${golden.name}\` to clients | ${PROTOCOL_NAMES.map(cellOf).join(" | ")} |`);
  });
}

test("the table of docs/usage-forms.md has these figures", () => {
  const head = "| form | chat | messages | responses |\n| --- | --- | --- | --- |\n";
  const page = readFileSync(PAGE, "utf8");
  const at = page.indexOf(head);
  assert.ok(at > 0);
  const table = `${head}${rows.join("\n")}\n`;
  if (process.env.UPDATE_GOLDENS) writeFileSync(PAGE, page.slice(0, at) + table);
  assert.ok(rows.length > 50);
  assert.equal(readFileSync(PAGE, "utf8").slice(at), table, "UPDATE_GOLDENS=1 writes it");
});
