/**
 * Sessions of twenty requests in the shape of recorded clients (test/golden/sessions): Claude Code's on messages,
 * Codex' on responses, and Codex' translated to chat, so that one agent is measured on two protocols. The records have
 * three requests each, and their long texts were removed. So tools, members, items and breakpoints are the real ones,
 * request by request; the texts are as long as those of the scripted session, and what follows the third request
 * repeats the shape. The model's behavior is the vendor's script.
 */
import { readFileSync } from "node:fs";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { ask, prose, type Session, SYSTEM, type Target, taskOf } from "./sessions.ts";
import type { Json } from "./vendor.ts";

type Item = Record<string, unknown>;

const FOLDER = new URL("../../../golden/sessions/", import.meta.url);

/** The first request of a record. */
function firstOf(name: string): Json {
  return JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")).steps[0];
}

const CLAUDE_CODE = firstOf("claude-code-2.1.330.messages.json");
const CODEX = firstOf("codex-0.169.0.responses.json");

/** The text that replaces each text removed from a record. */
const TAKEN_OUT = "Text of the client's own, as long as a sentence. ";

const textOf = (block: Item, text: string): Item => (block.text === TAKEN_OUT ? { ...block, text } : block);

/** What Codex puts around the output of a command. */
const resultOf = (id: string) =>
  `Chunk ID: 1f4a8f\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 450\nOutput:\n${plainResultOf(id)}\n`;
const plainResultOf = (id: string) => prose(1_800, `The result of ${id} is a stretch of the file`);

const list = (value: unknown) => (Array.isArray(value) ? (value as Item[]) : []);

/** The user states the task at the beginning and after each answer without calls. */
class Tasks {
  readonly #session: number;
  #nth = 0;
  isDue = true;

  constructor(session: number) {
    this.#session = session;
  }

  next(): string {
    this.isDue = false;
    return taskOf(this.#session, this.#nth++);
  }
}

function claudeCode(session: number, target: Target): Session {
  const tasks = new Tasks(session);
  const messages: { role: string; content: Item[] }[] = [];
  const { model: _, stream: __, messages: ___, ...body } = CLAUDE_CODE;
  const system = list(body.system).map((block) => textOf(block, SYSTEM));
  const metadata = { user_id: `user-1_session_${session}` };
  return {
    async next() {
      if (tasks.isDue) {
        const isFirst = messages.length === 0;
        const asked = { type: "text", text: tasks.next() };
        messages.push({
          role: "user",
          content: isFirst ? [{ type: "text", text: prose(2_000, "What is around") }, asked] : [asked],
        });
        if (isFirst) messages.push({ role: "system", content: [{ type: "text", text: prose(1_000, "What to mind") }] });
      }
      // As recorded: two breakpoints in the system text, one at the end of the last message.
      const marked = messages.map((message, at) => (at === messages.length - 1 ? withMark(message) : message));
      const { content, usage } = (await ask("messages", target, { ...body, system, metadata, messages: marked })) as {
        content: { type: string; id: string }[];
        usage: { input_tokens: number; cache_read_input_tokens?: number; cache_creation_input_tokens?: number };
      };
      messages.push({ role: "assistant", content: content as unknown as Item[] });
      const results = content
        .filter(({ type }) => type === "tool_use")
        .map(({ id }) => ({ tool_use_id: id, type: "tool_result", content: plainResultOf(id), is_error: false }));
      if (results.length > 0) messages.push({ role: "user", content: results });
      tasks.isDue = results.length === 0;
      const cached = usage.cache_read_input_tokens ?? 0;
      return { cached, input: usage.input_tokens + cached + (usage.cache_creation_input_tokens ?? 0) };
    },
  };
}

function withMark({ role, content }: { role: string; content: Item[] }) {
  const last = content.length - 1;
  const mark = { cache_control: { type: "ephemeral" } };
  return { role, content: content.map((block, at) => (at === last ? { ...block, ...mark } : block)) };
}

/** What precedes the user's own text in Codex' first request. */
function opening(): readonly Item[] {
  const lengths = [SYSTEM, prose(2_000, "What is around"), prose(1_000, "Where it works")];
  return list(CODEX.input)
    .slice(0, 3)
    .map((item, nth) => ({ ...item, content: list(item.content).map((part) => textOf(part, lengths[nth] ?? "")) }));
}

function codex(session: number, target: Target): Session {
  const tasks = new Tasks(session);
  const input: Item[] = [...opening()];
  const { model: _, stream: __, input: ___, ...body } = CODEX;
  return {
    async next() {
      if (tasks.isDue)
        input.push({ type: "message", role: "user", content: [{ type: "input_text", text: tasks.next() }] });
      const mine = { prompt_cache_key: `session-${session}`, client_metadata: { session: String(session) } };
      const { output, usage } = (await ask("responses", target, { ...body, ...mine, input })) as {
        output: { type: string; call_id: string }[];
        usage: { input_tokens: number; input_tokens_details?: { cached_tokens?: number } };
      };
      const calls = output.filter(({ type }) => type === "function_call");
      input.push(...output);
      for (const { call_id } of calls) {
        input.push({ type: "function_call_output", id: `fco_${call_id}`, call_id, output: resultOf(call_id) });
      }
      tasks.isDue = calls.length === 0;
      return { cached: usage.input_tokens_details?.cached_tokens ?? 0, input: usage.input_tokens };
    },
  };
}

function codexInChat(session: number, target: Target): Session {
  const tasks = new Tasks(session);
  const messages: Item[] = opening().map(({ role, content }) => ({
    role: role === "developer" ? "system" : role,
    content: list(content).map(({ text }) => ({ type: "text", text })),
  }));
  const tools = list(CODEX.tools)
    .filter(({ type }) => type === "function")
    .map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } }));
  return {
    async next() {
      if (tasks.isDue) messages.push({ role: "user", content: tasks.next() });
      const body = { messages, tools, tool_choice: "auto", prompt_cache_key: `session-${session}` };
      const { choices, usage } = (await ask("chat", target, body)) as {
        choices: { message: { content: string | null; tool_calls?: { id: string }[] } }[];
        usage: { prompt_tokens: number; prompt_tokens_details?: { cached_tokens?: number } };
      };
      const message = choices[0]?.message;
      const calls = message?.tool_calls ?? [];
      messages.push({ ...message });
      for (const { id } of calls) messages.push({ role: "tool", tool_call_id: id, content: resultOf(id) });
      tasks.isDue = calls.length === 0;
      return { cached: usage.prompt_tokens_details?.cached_tokens ?? 0, input: usage.prompt_tokens };
    },
  };
}

const CLIENTS: Readonly<Record<Protocol, (session: number, target: Target) => Session>> = {
  chat: codexInChat,
  messages: claudeCode,
  responses: codex,
};

/** A client of a protocol, as recorded. @param session distinguishes sessions of one agent. */
export function startRecordedSession(protocol: Protocol, session: number, target: Target): Session {
  return CLIENTS[protocol](session, target);
}
