/**
 * The objects that a conversation is made of, whatever their protocol: messages, items, content parts, sources, and the
 * tools that some of them carry. What is data (tool inputs, schemas, metadata) is not entered.
 */
import type { Protocol } from "../../values/protocol.ts";

export type Json = Readonly<Record<string, unknown>>;

/** The top-level members that hold the conversation. */
const ROOTS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: ["messages"],
  messages: ["messages", "system"],
  responses: ["input"],
};

/** Members in which a message, block or item holds further objects. */
const CONTAINERS = [
  "content",
  "output",
  "source",
  "file",
  "image_url",
  "input_audio",
  "audio",
  "audio_url",
  "video_url",
  "tools",
  "tool",
  "definition",
  "tool_changes",
] as const;

/** An object of the conversation, and the member under which it stands: that of its parent, or the root's. */
export interface Met {
  readonly node: Json;
  readonly under: string;
}

/**
 * Every object of the conversation, each once. The walk is iterative, since the depth is the client's; it trusts no
 * shape.
 */
export function* conversationObjects(protocol: Protocol, json: Json): Generator<Met> {
  const pending = ROOTS[protocol].map((under) => ({ value: json[under], under }));
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { value, under } = next;
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item === "object" && item !== null) pending.push({ value: item, under });
      continue;
    }
    if (!isObject(value)) continue;
    yield { node: value, under };
    for (const name of CONTAINERS) {
      const held = value[name];
      if (typeof held === "object" && held !== null) pending.push({ value: held, under: name });
    }
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The member of a value that may not be an object. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}
