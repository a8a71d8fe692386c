/** What a client sees of an answer: whether it ended properly, whether it had any text, and its usage. */
import type { Protocol } from "../../src/values/protocol.ts";

/** `complete` and `cut` (by a limit, or because funds ran out) are answers; `failed` reports an error; `open` has no proper end. */
export type Ending = "complete" | "failed" | "open";

export interface Used {
  readonly input: number;
  readonly output: number;
}

export interface Reading {
  readonly ending: Ending;
  /** Whether there was any text of the model. */
  readonly said: boolean;
  /** The usage that the answer reports at its end. */
  readonly used: Used | undefined;
}

interface Usage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
}

interface Payload {
  readonly type?: string;
  readonly error?: unknown;
  readonly usage?: Usage | null;
  readonly message?: { readonly usage?: Usage };
  readonly response?: { readonly usage?: Usage | null };
  readonly delta?: string | { readonly text?: string };
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
}

/** Reads the body of a 200. */
export function readAnswer(protocol: Protocol, stream: boolean, text: string): Reading {
  if (stream) return readStream(protocol, text);
  const payload = parsed(text);
  if (!payload) return { ending: "open", said: false, used: undefined };
  return { ending: "complete", said: true, used: usedOf(payload.usage) };
}

const TERMINAL = { chat: "[DONE]", messages: "message_stop", responses: "response.completed" } as const;

function readStream(protocol: Protocol, text: string): Reading {
  const data = text
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trim());
  const payloads = data.map(parsed).filter((payload) => payload !== undefined);
  let used: Used | undefined;
  for (const payload of payloads)
    used = later(used, usedOf(payload.usage ?? payload.message?.usage ?? payload.response?.usage));
  const last = data.at(-1) ?? "";
  return { ending: endingOf(protocol, last, text), said: payloads.some(says), used };
}

function endingOf(protocol: Protocol, last: string, text: string): Ending {
  // An event without the empty line after it does not count (WHATWG HTML 9.2.6).
  if (!text.endsWith("\n\n")) return "open";
  const type = last === "[DONE]" ? last : parsed(last)?.type;
  if (type === TERMINAL[protocol] || (protocol === "responses" && type === "response.incomplete")) return "complete";
  if (protocol === "responses") return type === "response.failed" ? "failed" : "open";
  return parsed(last)?.error ? "failed" : "open";
}

function says({ type, delta, choices }: Payload): boolean {
  if (type === "content_block_delta") return typeof delta === "object" && Boolean(delta.text);
  if (type === "response.output_text.delta") return typeof delta === "string" && delta !== "";
  return choices?.some((choice) => Boolean(choice.delta?.content)) ?? false;
}

function usedOf(usage: Usage | null | undefined): Used | undefined {
  if (!usage) return undefined;
  const input = usage.prompt_tokens ?? usage.input_tokens;
  const output = usage.completion_tokens ?? usage.output_tokens;
  return { input: input ?? -1, output: output ?? -1 };
}

/** The messages protocol reports input tokens first and output tokens last. */
function later(before: Used | undefined, now: Used | undefined): Used | undefined {
  if (!before || !now) return now ?? before;
  return { input: now.input < 0 ? before.input : now.input, output: now.output < 0 ? before.output : now.output };
}

function parsed(text: string): Payload | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? (value as Payload) : undefined;
  } catch {
    return undefined;
  }
}
