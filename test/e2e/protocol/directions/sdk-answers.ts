/** How a client's official SDK parses an answer, whole or streamed, in terms that are the same for all protocols. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { Json } from "./rig.ts";

export interface Told {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly stop: string;
  readonly usage: readonly [input: number, output: number];
}

interface Server {
  /** Without `/v1`. */
  readonly url: string;
  readonly key: string;
}

/** Without a limit the SDK refuses to request long answers whole. */
const TIMEOUT_MS = 60_000;

type ChatCall = OpenAI.ChatCompletionMessageFunctionToolCall;

function chatTold(
  message: { readonly content: string | null; readonly tool_calls?: readonly OpenAI.ChatCompletionMessageToolCall[] },
  finish: string | null,
  usage: OpenAI.CompletionUsage | null | undefined,
): Told {
  const calls = (message.tool_calls ?? []).filter((call): call is ChatCall => call.type !== "custom");
  return {
    text: message.content ?? "",
    reasoning: String((message as unknown as Json).reasoning_content ?? ""),
    calls: calls.map((call) => ({ id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) })),
    stop: String(finish),
    usage: [usage?.prompt_tokens ?? -1, usage?.completion_tokens ?? -1],
  };
}

/** Sends a body by its protocol's SDK. */
export const ASK: Readonly<Record<Protocol, (server: Server, body: Json, stream: boolean) => Promise<Told>>> = {
  async chat({ url, key }, body, stream) {
    const sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
    const asked = body as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming;
    if (!stream) {
      const { choices, usage } = await sdk.chat.completions.create(asked);
      if (!choices[0]) throw new Error("no choice");
      return chatTold(choices[0].message, choices[0].finish_reason, usage);
    }
    // The SDK's accumulator demands the JSON of structured output, which a cut reply does not have.
    const message = { content: "", reasoning_content: "", tool_calls: [] as ChatCall[] };
    let finish: string | null = null;
    let usage: OpenAI.CompletionUsage | null | undefined;
    const counted = { ...asked, stream: true, stream_options: { include_usage: true } } as const;
    for await (const chunk of await sdk.chat.completions.create(counted)) {
      usage = chunk.usage ?? usage;
      const [choice] = chunk.choices;
      const delta = choice?.delta;
      finish = choice?.finish_reason ?? finish;
      message.content += delta?.content ?? "";
      message.reasoning_content += String((delta as unknown as Json | undefined)?.reasoning_content ?? "");
      for (const { index, id = "", function: said } of delta?.tool_calls ?? []) {
        const call = message.tool_calls[index] ?? { type: "function", id, function: { name: "", arguments: "" } };
        message.tool_calls[index] = call;
        call.function.name += said?.name ?? "";
        call.function.arguments += said?.arguments ?? "";
      }
    }
    return chatTold(message, finish, usage);
  },
  async messages({ url, key }, body, stream) {
    const sdk = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0, timeout: TIMEOUT_MS });
    const asked = body as unknown as Anthropic.MessageCreateParamsNonStreaming;
    const message = stream ? await sdk.messages.stream(asked).finalMessage() : await sdk.messages.create(asked);
    const { content, stop_reason, usage } = message;
    return {
      text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
      reasoning: content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
      calls: content.flatMap((block) =>
        block.type === "tool_use" ? [{ id: block.id, name: block.name, input: block.input }] : [],
      ),
      stop: String(stop_reason),
      usage: [usage.input_tokens, usage.output_tokens],
    };
  },
  async responses({ url, key }, body, stream) {
    const sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
    const asked = body as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming;
    const response = stream
      ? await sdk.responses.stream({ ...asked, stream: true }).finalResponse()
      : await sdk.responses.create(asked);
    const { output, status, incomplete_details, usage } = response;
    return {
      text: output
        .flatMap((item) => (item.type === "message" ? item.content : []))
        .map((part) => (part.type === "output_text" ? part.text : ""))
        .join(""),
      reasoning: output
        .flatMap((item) => (item.type === "reasoning" ? item.summary : []))
        .map(({ text }) => text)
        .join(""),
      calls: output.flatMap((item) =>
        item.type === "function_call" ? [{ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) }] : [],
      ),
      // Some servers do not give the reason; there are two, and the other one is a refusal.
      stop: status === "incomplete" ? (incomplete_details?.reason ?? "max_output_tokens") : String(status),
      usage: [usage?.input_tokens ?? -1, usage?.output_tokens ?? -1],
    };
  },
};
