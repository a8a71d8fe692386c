/** Reads `test/golden/usage`: a server's body and stream, and what is billed for them (docs/usage-forms.md). */
import { readdirSync, readFileSync } from "node:fs";
import { type Exchange, isFault, type StreamConverter } from "../../../../src/convert/exchange.ts";
import { openPassthrough } from "../../../../src/convert/passthrough/passthrough.ts";
import { openTranslation } from "../../../../src/convert/translate/translate.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { clientRequest, countingContext, routeOf, smallBody, sse } from "../translate/rig.ts";

/** The estimate of the input from the request's size, for counts without an input or an output. */
export const INPUT_ESTIMATE = 1_000;

export interface UsageGolden {
  readonly name: string;
  readonly protocol: Protocol;
  /** Choices that the client asked for; 1 unless given. */
  readonly n?: number;
  readonly whole?: object;
  /** Payloads of the stream's frames. */
  readonly stream?: readonly unknown[];
  readonly counted: "upstream" | "estimate";
  readonly tokens: {
    readonly input: number;
    readonly cached_input: number;
    readonly cache_write: number;
    readonly cache_write_1h: number;
    readonly output: number;
    readonly reasoning: number;
  };
  readonly tool_calls?: Readonly<Record<string, number>>;
  readonly nano_usd: string;
}

const FOLDER = new URL("../../../golden/usage/", import.meta.url);

/** All goldens, sorted by name. */
export function usageGoldens(): readonly UsageGolden[] {
  return readdirSync(FOLDER)
    .sort()
    .map((file) => ({
      name: file.replace(/\.json$/, ""),
      ...JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")),
    }));
}

/** The exchange of a client with the golden's server. */
export function exchangeWith(golden: UsageGolden, client: Protocol, stream: boolean): Exchange {
  const choices = golden.n === undefined ? {} : { n: golden.n };
  const asked = client === "chat" && stream ? { stream_options: { include_usage: true } } : {};
  const body = smallBody(client, { stream, ...choices, ...asked });
  const permitted = { outputLimit: undefined, inputEstimate: INPUT_ESTIMATE, strict: false };
  const open = client === golden.protocol ? openPassthrough : openTranslation;
  const exchange = open(clientRequest(client, body), routeOf(golden.protocol), permitted, countingContext());
  if (isRefusal(exchange)) throw new Error(`${golden.name}: refused: ${JSON.stringify(exchange.facts)}`);
  return exchange;
}

/** The whole reply as the client gets it, and its counts. */
export function wholeReply(golden: UsageGolden, client: Protocol) {
  const reply = exchangeWith(golden, client, false).whole(Buffer.from(JSON.stringify(golden.whole)));
  if (isFault(reply)) throw new Error(`${golden.name}: ${reply.reason}`);
  return { counts: reply.counts, json: JSON.parse(Buffer.from(reply.body).toString()) };
}

/** The stream as the client gets it, and its counts; `chunkBytes` is how the network cuts it. */
export function streamedReply(golden: UsageGolden, client: Protocol, chunkBytes: number) {
  const converter = exchangeWith(golden, client, true).stream();
  const bytes = Buffer.from(sse(golden.protocol, golden.stream ?? []));
  const out: Uint8Array[] = [];
  const take = (frames: ReturnType<StreamConverter["push"]>) => {
    for (const frame of frames) out.push(frame.bytes);
  };
  for (let at = 0; at < bytes.length && !converter.ended; at += chunkBytes) {
    take(converter.push(bytes.subarray(at, at + chunkBytes)));
  }
  if (!converter.ended) take(converter.end());
  if (converter.fault) throw new Error(`${golden.name}: ${converter.fault.reason}`);
  return { counts: converter.counts(), text: Buffer.concat(out).toString(), ended: converter.ended };
}
