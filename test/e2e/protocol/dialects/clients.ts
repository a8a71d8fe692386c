/** The official SDKs as judges: how they parse an answer, whole and streamed, in terms that all protocols share. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Json, recordOf } from "../directions/rig.ts";
import type { End, Refused, Understood } from "./goldens.ts";

export interface Asked {
  readonly url: string;
  readonly key: string;
  readonly model: string;
  readonly stream: boolean;
}

/** What the SDK returns or throws. */
export type Heard = Understood | { readonly error: Refused };

const PARAMETERS = { type: "object" };
const QUESTION = "Weather?";
const TOO_LONG = "context_length_exceeded";

const chatReasoning = (message: Json) => String(message.reasoning_content ?? message.reasoning ?? "");

async function chat({ url, key, model, stream }: Asked): Promise<Understood> {
  const sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const tools: OpenAI.ChatCompletionTool[] = [
    { type: "function", function: { name: "weather", parameters: PARAMETERS } },
  ];
  const body = { model, tools, messages: [{ role: "user" as const, content: QUESTION }] };
  let reasoning = "";
  const answer = async () => {
    const running = sdk.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
    running.on("chunk", ({ choices }) => {
      if (choices[0]) reasoning += chatReasoning(choices[0].delta as unknown as Json);
    });
    return running.finalChatCompletion();
  };
  const { choices, usage } = stream ? await answer() : await sdk.chat.completions.create(body);
  const [choice] = choices;
  if (!choice) throw new Error("no choice");
  const { message } = choice;
  const calls = (message.tool_calls ?? []).flatMap((call) => {
    return call.type === "function" ? [{ name: call.function.name, arguments: call.function.arguments }] : [];
  });
  return {
    text: message.content ?? "",
    reasoning: stream ? reasoning : chatReasoning(message as unknown as Json),
    calls,
    end: endOf(choice.finish_reason, {
      stop: "stop",
      tool_calls: "calls",
      length: "truncated",
      content_filter: "refused",
    }),
    usage: usage ? { input: usage.prompt_tokens, output: usage.completion_tokens } : null,
  };
}

async function messages({ url, key, model, stream }: Asked): Promise<Understood> {
  const sdk = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
  const tools: Anthropic.Tool[] = [{ name: "weather", input_schema: { type: "object" } }];
  const body = {
    model,
    tools,
    max_tokens: 4_000,
    thinking: { type: "enabled" as const, budget_tokens: 2_000 },
    messages: [{ role: "user" as const, content: QUESTION }],
  };
  // The accumulated input is an object, whose digits are limited to those of a double.
  const inputs: string[] = [];
  const running = stream ? sdk.messages.stream(body) : undefined;
  running?.on("streamEvent", (event) => {
    if (event.type === "content_block_start" && event.content_block.type === "tool_use") inputs.push("");
    if (event.type === "content_block_delta" && event.delta.type === "input_json_delta")
      inputs[inputs.length - 1] += event.delta.partial_json;
  });
  const asked = running ? undefined : sdk.messages.create(body);
  const { content, stop_reason, usage } = asked
    ? await asked
    : await (running as NonNullable<typeof running>).finalMessage();
  const uses = content.filter((block) => block.type === "tool_use");
  const calls = uses.map(({ name, input }, place) => ({ name, arguments: inputs[place] || JSON.stringify(input) }));
  const input = usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);
  return {
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    reasoning: content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
    calls,
    end: endOf(stop_reason, {
      end_turn: "stop",
      tool_use: "calls",
      max_tokens: "truncated",
      model_context_window_exceeded: "truncated",
      refusal: "refused",
    }),
    usage: { input, output: usage.output_tokens },
  };
}

async function responses({ url, key, model, stream }: Asked): Promise<Understood> {
  const sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const tools: OpenAI.Responses.Tool[] = [{ type: "function", name: "weather", parameters: PARAMETERS, strict: false }];
  const body = { model, tools, input: QUESTION, store: false, reasoning: { effort: "high", summary: "auto" } } as const;
  const asked = { ...body, tools };
  const { output, status, incomplete_details, usage, error } = stream
    ? await sdk.responses.stream(asked).finalResponse()
    : await sdk.responses.create(asked);
  if (status === "failed") throw new OpenAI.APIError(undefined, { ...error }, error?.message, undefined);
  const parts = output.flatMap((item) => (item.type === "message" ? item.content : []));
  const thoughts = output.flatMap((item) =>
    item.type === "reasoning" ? [...item.summary, ...(item.content ?? [])] : [],
  );
  const calls = output.flatMap((item) => {
    return item.type === "function_call" ? [{ name: item.name, arguments: item.arguments }] : [];
  });
  const end = endOf(incomplete_details?.reason ?? status, {
    completed: calls.length > 0 ? "calls" : "stop",
    max_output_tokens: "truncated",
    content_filter: "refused",
  });
  return {
    text: parts.map((part) => (part.type === "output_text" ? part.text : "")).join(""),
    reasoning: thoughts.map(({ text }) => text).join(""),
    calls,
    end,
    usage: usage ? { input: usage.input_tokens, output: usage.output_tokens } : null,
  };
}

function endOf(word: string | null | undefined, words: Readonly<Record<string, End>>): End {
  const end = words[String(word)];
  if (end === undefined) throw new Error(`the client does not know the stop reason "${word}"`);
  return end;
}

const ASK: Readonly<Record<Protocol, (asked: Asked) => Promise<Understood>>> = { chat, messages, responses };

/** Sends a request as a client of this protocol. @throws errors that the server did not send. */
export async function hear(client: Protocol, asked: Asked): Promise<Heard> {
  try {
    return await ASK[client](asked);
  } catch (error) {
    if (error instanceof Anthropic.APIError || error instanceof OpenAI.APIError)
      return { error: refusalOf(client, error) };
    throw error;
  }
}

/** What clients act on: the code of chat and responses, the sentence of messages, otherwise the gateway's cause. */
function refusalOf(client: Protocol, { status, error }: { status: number | undefined; error: unknown }): Refused {
  const whole = recordOf(error);
  const { code, cause, message } = client === "messages" ? recordOf(whole.error) : whole;
  const words = String(message);
  // Messages has no codes: clients recognize a conversation that is too long by this sentence, and compact it.
  const named = client === "messages" ? (words.startsWith("prompt is too long") ? TOO_LONG : undefined) : code;
  const isCode = named === TOO_LONG || named === "content_policy_violation";
  return { status: status ?? null, means: String(isCode ? named : (cause ?? code)), words };
}

/**
 * The payloads of a stream as JSON, or the whole body, without what the gateway may change: model names and event
 * numbers.
 */
export function payloads(text: string, stream: boolean): readonly unknown[] {
  const lines = stream
    ? text.split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []))
    : [text];
  return lines.flatMap((line) => (line === "[DONE]" ? [] : [asSent(JSON.parse(line))]));
}

function asSent(payload: unknown): unknown {
  const { model: _, sequence_number: __, ...rest } = recordOf(payload);
  return rest;
}
