/**
 * Three agents of two turns, one per protocol, each on its official SDK: they send a picture and two tools, receive the
 * calls, send back one result with a picture and one failure, and read the final text.
 */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { Json } from "./rig.ts";

export const SYSTEM = "You look at roofs.";
export const QUESTION = "What is on this roof?";
/** One white pixel. */
export const ROOF = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4//8/AwAI/AL+p5qgoAAAAABJRU5ErkJggg==";
export const CHIMNEY =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAgLvRWwAAAABJRU5ErkJggg==";
export const FOUND = "A chimney, see the picture.";
export const FAILED = "the archive is closed";

const SCHEMA = {
  type: "object" as const,
  properties: { part: { type: "string" } },
  required: ["part"],
  additionalProperties: false,
};
const TOOLS = ["look", "search"] as const;

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

/** What an agent received in the two turns. */
export interface Heard {
  readonly calls: readonly Call[];
  /** The reasoning that it was shown in the first turn. */
  readonly thought: string;
  readonly finalText: string;
}

export interface LoopSettings {
  /** `http://127.0.0.1:port`, without `/v1`. */
  readonly url: string;
  readonly key: string;
  readonly model: string;
  readonly stream: boolean;
  readonly fetch: typeof fetch;
}

/** Runs both turns. */
export type Loop = (settings: LoopSettings) => Promise<Heard>;

const dataUrl = (png: string) => `data:image/png;base64,${png}`;

/** Chat has no member for reasoning: the SDK passes `reasoning_content` through, and agents collect it themselves. */
async function chatLoop({ url, key, model, stream, fetch }: LoopSettings): Promise<Heard> {
  type Message = OpenAI.ChatCompletionMessageParam;
  const sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetch });
  const tools = TOOLS.map((name) => ({ type: "function" as const, function: { name, parameters: SCHEMA } }));
  const turn = async (messages: Message[]) => {
    const ask = { model, messages, tools, reasoning_effort: "high" as const, max_completion_tokens: 4000 };
    if (!stream) {
      const whole = (await sdk.chat.completions.create(ask)).choices[0]?.message;
      return { message: whole, thought: String((whole as unknown as Json).reasoning_content ?? "") };
    }
    let thought = "";
    const running = sdk.chat.completions.stream(ask);
    running.on("chunk", ({ choices }) => {
      thought += String((choices[0]?.delta as Json | undefined)?.reasoning_content ?? "");
    });
    return { message: (await running.finalChatCompletion()).choices[0]?.message, thought };
  };
  const image = { type: "image_url" as const, image_url: { url: dataUrl(ROOF) } };
  const opening: Message[] = [
    { role: "system", content: SYSTEM },
    { role: "user", content: [{ type: "text", text: QUESTION }, image] },
  ];
  const { message, thought } = await turn(opening);
  const calls = (message?.tool_calls ?? []).flatMap((call) =>
    call.type === "function"
      ? [{ id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) }]
      : [],
  );
  const results = [
    { role: "tool", tool_call_id: calls[0]?.id, content: [{ type: "text", text: FOUND }, chatImage(CHIMNEY)] },
    { role: "tool", tool_call_id: calls[1]?.id, content: `Error: ${FAILED}` },
  ] as unknown as Message[]; // Chat's types have no picture in a result; agents send it all the same.
  const said = { role: "assistant", content: message?.content, tool_calls: message?.tool_calls };
  const thinking = thought === "" ? {} : { reasoning_content: thought };
  const final = await turn([...opening, { ...said, ...thinking } as Message, ...results]);
  return { calls, thought, finalText: final.message?.content ?? "" };
}

const chatImage = (png: string) => ({ type: "image_url", image_url: { url: dataUrl(png) } });

async function messagesLoop({ url, key, model, stream, fetch }: LoopSettings): Promise<Heard> {
  const sdk = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0, fetch });
  const tools = TOOLS.map((name) => ({ name, input_schema: SCHEMA }));
  const turn = (messages: Anthropic.MessageParam[]) => {
    const thinking = { type: "adaptive" as const, display: "summarized" as const };
    const ask = { model, max_tokens: 4000, system: SYSTEM, tools, thinking, messages };
    return stream ? sdk.messages.stream(ask).finalMessage() : sdk.messages.create(ask);
  };
  const opening: Anthropic.MessageParam = {
    role: "user",
    content: [{ type: "text", text: QUESTION }, messagesImage(ROOF)],
  };
  const { content } = await turn([opening]);
  const calls = content.flatMap((block) =>
    block.type === "tool_use" ? [{ id: block.id, name: block.name, input: block.input }] : [],
  );
  const results: Anthropic.MessageParam = {
    role: "user",
    content: [
      {
        type: "tool_result",
        tool_use_id: calls[0]?.id ?? "",
        content: [{ type: "text", text: FOUND }, messagesImage(CHIMNEY)],
      },
      { type: "tool_result", tool_use_id: calls[1]?.id ?? "", content: FAILED, is_error: true },
    ],
  };
  const final = await turn([opening, { role: "assistant", content }, results]);
  const textOf = (blocks: typeof content) => blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  const thought = content.map((block) => (block.type === "thinking" ? block.thinking : "")).join("");
  return { calls, thought, finalText: textOf(final.content) };
}

function messagesImage(data: string) {
  return { type: "image" as const, source: { type: "base64" as const, media_type: "image/png" as const, data } };
}

async function responsesLoop({ url, key, model, stream, fetch }: LoopSettings): Promise<Heard> {
  type Item = OpenAI.Responses.ResponseInputItem;
  const sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetch });
  const tools = TOOLS.map((name) => ({ type: "function" as const, name, parameters: SCHEMA, strict: false }));
  const turn = (input: Item[]) => {
    const reasoning = { effort: "high" as const, summary: "auto" as const };
    const include = ["reasoning.encrypted_content" as const];
    const limit = { max_output_tokens: 4000, store: false };
    const ask = { model, instructions: SYSTEM, input, tools, reasoning, include, ...limit };
    return stream ? sdk.responses.stream(ask).finalResponse() : sdk.responses.create(ask);
  };
  const opening: Item = {
    role: "user",
    content: [{ type: "input_text", text: QUESTION }, responsesImage(ROOF)],
  };
  const { output } = await turn([opening]);
  const calls = output.flatMap((item) =>
    item.type === "function_call" ? [{ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) }] : [],
  );
  const results: Item[] = [
    {
      type: "function_call_output",
      call_id: calls[0]?.id ?? "",
      output: [{ type: "input_text", text: FOUND }, responsesImage(CHIMNEY)],
    },
    { type: "function_call_output", call_id: calls[1]?.id ?? "", output: `Error: ${FAILED}` },
  ];
  const final = await turn([opening, ...(output as Item[]), ...results]);
  const thought = output.flatMap((item) => (item.type === "reasoning" ? item.summary.map((part) => part.text) : []));
  return { calls, thought: thought.join(""), finalText: final.output_text };
}

function responsesImage(png: string) {
  return { type: "input_image" as const, detail: "auto" as const, image_url: dataUrl(png) };
}

export const LOOPS: Readonly<Record<Protocol, Loop>> = {
  chat: chatLoop,
  messages: messagesLoop,
  responses: responsesLoop,
};
