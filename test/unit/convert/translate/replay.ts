/**
 * A server that answers every request with one stream, and the replies that the official SDKs rebuild from it, under
 * neutral names.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Protocol } from "../../../../src/values/protocol.ts";

/** A reply as an SDK's accumulator rebuilt it. */
export interface Rebuilt {
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly calls: readonly { readonly name: string; readonly input: string }[];
  readonly stop: string;
  /** All input tokens, including cached ones, and output tokens. */
  readonly tokens: readonly [number, number];
}

/** Serves `stream` to one SDK and returns the reply that it rebuilt; rejects if the SDK throws. */
export async function rebuild(client: Protocol, stream: string): Promise<Rebuilt> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" }).end(stream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    return await READERS[client](url);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const READERS: Readonly<Record<Protocol, (url: string) => Promise<Rebuilt>>> = {
  async chat(url) {
    const sdk = new OpenAI({ baseURL: url, apiKey: "sk-test", maxRetries: 0 });
    const stream = sdk.chat.completions.stream({ model: "m", messages: [] });
    let reasoning = "";
    stream.on("chunk", (chunk) => {
      reasoning += (chunk.choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";
    });
    const final = await stream.finalChatCompletion();
    const [choice] = final.choices;
    return {
      text: choice?.message.content ?? "",
      reasoning,
      refusal: choice?.message.refusal ?? "",
      calls: (choice?.message.tool_calls ?? []).map((call) => {
        const { function: fn, custom } = call as unknown as {
          function?: { name: string; arguments: string };
          custom?: { name: string; input: string };
        };
        return { name: String(fn?.name ?? custom?.name), input: String(fn?.arguments ?? custom?.input) };
      }),
      stop: String(choice?.finish_reason),
      tokens: [Number(final.usage?.prompt_tokens), Number(final.usage?.completion_tokens)],
    };
  },
  async messages(url) {
    const sdk = new Anthropic({ baseURL: url, apiKey: "sk-test", maxRetries: 0 });
    const final = await sdk.messages
      .stream({ model: "m", max_tokens: 100, messages: [{ role: "user", content: "hello" }] })
      .finalMessage();
    const { usage } = final;
    const input = usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);
    return {
      text: final.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
      reasoning: final.content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
      refusal: final.stop_details?.explanation ?? "",
      calls: final.content.flatMap((block) =>
        block.type === "tool_use" ? [{ name: block.name, input: JSON.stringify(block.input) }] : [],
      ),
      stop: String(final.stop_reason),
      tokens: [input, usage.output_tokens],
    };
  },
  async responses(url) {
    const sdk = new OpenAI({ baseURL: url, apiKey: "sk-test", maxRetries: 0 });
    const final = await sdk.responses.stream({ model: "m", input: "hello" }).finalResponse();
    const parts = final.output.flatMap((item) => (item.type === "message" ? item.content : []));
    return {
      text: parts.map((part) => (part.type === "output_text" ? part.text : "")).join(""),
      reasoning: final.output
        .map((item) => (item.type === "reasoning" ? item.summary.map(({ text }) => text).join("") : ""))
        .join(""),
      refusal: parts.map((part) => (part.type === "refusal" ? part.refusal : "")).join(""),
      calls: final.output.flatMap((item) => {
        if (item.type === "custom_tool_call") return [{ name: item.name, input: item.input }];
        if (item.type !== "function_call") return [];
        const name = item.namespace ? `${item.namespace}__${item.name}` : item.name;
        return [{ name, input: item.arguments }];
      }),
      stop: final.incomplete_details?.reason ?? String(final.status),
      tokens: [Number(final.usage?.input_tokens), Number(final.usage?.output_tokens)],
    };
  },
};
