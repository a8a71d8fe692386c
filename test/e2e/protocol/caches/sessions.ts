/**
 * An agent's session of twenty requests in each protocol: 5,000 tokens of instructions, ten tools, and tasks that take
 * three rounds of tools each. Each client does for its cache what the known clients of its protocol do, and nothing
 * else.
 */
import { PROTOCOLS, type Protocol } from "../../../../src/values/protocol.ts";
import { type Json, RESULTS_PER_TASK } from "./vendor.ts";

export interface Target {
  /** Without `/v1`. */
  readonly url: string;
  readonly key: string;
  readonly model: string;
}

/** A session that a test advances request by request. */
export interface Session {
  /** Sends one request. @returns the input tokens as reported to the client. */
  next(): Promise<{ readonly cached: number; readonly input: number }>;
}

export const REQUESTS_PER_SESSION = 20;

/** Text of a given length that says what it is about. */
export const prose = (chars: number, about: string) =>
  `${about}: read what is there before you change it, say what you found, and keep what works. `
    .repeat(Math.ceil(chars / 80))
    .slice(0, chars);

/** 5,000 tokens at four characters each. */
export const SYSTEM = prose(20_000, "You are an agent that works on a code base");

const TOOLS = Array.from({ length: 10 }, (_, nth) => ({
  name: `tool_${nth}`,
  description: prose(600, `Tool ${nth} looks at one file and answers with what it has`),
  schema: {
    type: "object",
    properties: { path: { type: "string", description: "Where the file is." }, reason: { type: "string" } },
    required: ["path", "reason"],
    additionalProperties: false,
  },
}));

export const taskOf = (session: number, nth: number) =>
  prose(500, `Session ${session}, task ${nth}, which is part of the same change as the one before it`);
const resultOf = (id: string) => prose(1_800, `The result of ${id} is a stretch of the file`);

/** A client of a protocol. @param session distinguishes sessions of one agent. */
export function startSession(protocol: Protocol, session: number, target: Target): Session {
  return CLIENTS[protocol](session, target);
}

/** Requests a whole answer. @throws if the server refuses. */
export async function ask(protocol: Protocol, { url, key, model }: Target, body: Json): Promise<Json> {
  const answer = await fetch(url + PROTOCOLS[protocol].path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, ...body }),
  });
  const json = (await answer.json()) as Json;
  if (!answer.ok) throw new Error(`${answer.status}: ${JSON.stringify(json)}`);
  return json;
}

interface Task {
  nth: number;
  results: number;
}

/** Whether the next turn is a task from the user rather than tool results. */
const isDone = ({ results }: Task) => results === 0 || results === RESULTS_PER_TASK;

type Json2 = Record<string, unknown>;

const CLIENTS: Readonly<Record<Protocol, (session: number, target: Target) => Session>> = {
  chat(session, target) {
    const messages: Json2[] = [{ role: "system", content: SYSTEM }];
    const task: Task = { nth: 0, results: 0 };
    const tools = TOOLS.map(({ name, description, schema }) => ({
      type: "function",
      function: { name, description, parameters: schema },
    }));
    return {
      async next() {
        if (isDone(task)) messages.push({ role: "user", content: taskOf(session, task.nth++) });
        task.results = isDone(task) ? 0 : task.results;
        const prompt_cache_key = `session-${session}`;
        const { choices, usage } = (await ask("chat", target, { messages, tools, prompt_cache_key })) as {
          choices: { message: { content: string | null; tool_calls?: { id: string }[] } }[];
          usage: { prompt_tokens: number; prompt_tokens_details?: { cached_tokens?: number } };
        };
        const message = choices[0]?.message;
        messages.push({ ...message });
        for (const { id } of message?.tool_calls ?? []) {
          messages.push({ role: "tool", tool_call_id: id, content: resultOf(id) });
          task.results += 1;
        }
        return { cached: usage.prompt_tokens_details?.cached_tokens ?? 0, input: usage.prompt_tokens };
      },
    };
  },
  messages(session, target) {
    const messages: { role: string; content: Json2[] }[] = [];
    const task: Task = { nth: 0, results: 0 };
    const ephemeral = { cache_control: { type: "ephemeral" } };
    const tools = TOOLS.map(({ name, description, schema }, at) => ({
      name,
      description,
      input_schema: schema,
      ...(at === TOOLS.length - 1 ? ephemeral : {}),
    }));
    const system = [{ type: "text", text: SYSTEM, ...ephemeral }];
    return {
      async next() {
        if (isDone(task))
          messages.push({ role: "user", content: [{ type: "text", text: taskOf(session, task.nth++) }] });
        task.results = isDone(task) ? 0 : task.results;
        const users = messages.flatMap(({ role }, at) => (role === "user" ? [at] : [])).slice(-2);
        const marked = messages.map((message, at) =>
          users.includes(at)
            ? {
                ...message,
                content: message.content.map((b, i, all) => (i === all.length - 1 ? { ...b, ...ephemeral } : b)),
              }
            : message,
        );
        const metadata = { user_id: `user_agent_session_${session}` };
        const body = { max_tokens: 1_000, system, tools, messages: marked, metadata };
        const { content, usage } = (await ask("messages", target, body)) as {
          content: { type: string; id: string }[];
          usage: { input_tokens: number; cache_read_input_tokens?: number; cache_creation_input_tokens?: number };
        };
        messages.push({ role: "assistant", content: content as unknown as Json2[] });
        const results = content
          .filter(({ type }) => type === "tool_use")
          .map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: resultOf(id) }));
        if (results.length > 0) messages.push({ role: "user", content: results });
        task.results += results.length;
        const cached = usage.cache_read_input_tokens ?? 0;
        return { cached, input: usage.input_tokens + cached + (usage.cache_creation_input_tokens ?? 0) };
      },
    };
  },
  responses(session, target) {
    const input: Json2[] = [];
    const task: Task = { nth: 0, results: 0 };
    const tools = TOOLS.map(({ name, description, schema }) => ({
      type: "function",
      name,
      description,
      parameters: schema,
      strict: false,
    }));
    return {
      async next() {
        if (isDone(task)) {
          input.push({ role: "user", content: [{ type: "input_text", text: taskOf(session, task.nth++) }] });
        }
        task.results = isDone(task) ? 0 : task.results;
        const body = { instructions: SYSTEM, input, tools, store: false, prompt_cache_key: `session-${session}` };
        const { output, usage } = (await ask("responses", target, body)) as {
          output: { type: string; call_id: string }[];
          usage: { input_tokens: number; input_tokens_details?: { cached_tokens?: number } };
        };
        for (const item of output) input.push({ ...item });
        for (const { type, call_id } of output) {
          if (type !== "function_call") continue;
          input.push({ type: "function_call_output", call_id, output: resultOf(call_id) });
          task.results += 1;
        }
        return { cached: usage.input_tokens_details?.cached_tokens ?? 0, input: usage.input_tokens };
      },
    };
  },
};
