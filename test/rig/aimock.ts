/**
 * A third-party model server for all three protocols: @copilotkit/aimock, which gives programmed answers and reads each
 * request into one common form.
 */
import { type ChatCompletionRequest, LLMock } from "@copilotkit/aimock";

/** The answer that the server gives. */
export interface Said {
  readonly text: string;
  readonly reasoning: string | undefined;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: object }[];
  /** The finish reason in chat's words. */
  readonly finish: "stop" | "tool_calls" | "length";
  /** Undefined if the server reports no usage. */
  readonly usage: { readonly input: number; readonly output: number } | undefined;
}

/** A conversation in a common form. */
export interface Heard {
  /**
   * All instructions. Like all texts here it has no white space, which joins the parts of a text in one protocol only.
   */
  readonly system: string;
  /** Texts, calls and results in order. Consecutive texts of one speaker are joined. */
  readonly turns: readonly (readonly string[])[];
  /** The names of the offered functions. */
  readonly tools: readonly string[];
}

export interface ThirdParty {
  readonly name: string;
  /** `http://127.0.0.1:port`, without `/v1`. */
  readonly url: string;
  readonly key: string;
  /** Sets the answer for all requests from now on. */
  say(said: Said): void;
  /** The last request as the server has read it, in whichever protocol. */
  heard(): Heard;
  stop(): Promise<void>;
}

/**
 * Starts a server in this process. It sends its text in small pieces, and refuses thinking that does not come back as
 * required.
 */
export async function startAimock(): Promise<ThirdParty> {
  const server = new LLMock({ port: 0, logLevel: "silent", strict: true, chunkSize: 7 });
  await server.start();
  return {
    name: "aimock",
    url: server.url,
    key: "none",
    say({ text, reasoning, calls, finish, usage }) {
      server.clearFixtures();
      const toolCalls = calls.map(({ id, name, input }) => ({ id, name, arguments: JSON.stringify(input) }));
      server.on(
        {},
        {
          content: text,
          finishReason: finish,
          ...(reasoning === undefined ? {} : { reasoning }),
          ...(toolCalls.length === 0 ? {} : { toolCalls }),
          // Each protocol reads its own two members.
          ...(usage && {
            usage: {
              prompt_tokens: usage.input,
              completion_tokens: usage.output,
              input_tokens: usage.input,
              output_tokens: usage.output,
              total_tokens: usage.input + usage.output,
            },
          }),
        },
      );
    },
    heard() {
      const body = server.getLastRequest()?.body;
      if (!body) throw new Error("the server has received no request");
      return readingOf(body as ChatCompletionRequest);
    },
    stop: () => server.stop(),
  };
}

function readingOf({ messages, tools }: ChatCompletionRequest): Heard {
  const system: string[] = [];
  const turns: string[][] = [];
  for (const { role, content, tool_calls: calls = [], tool_call_id: answered = "" } of messages) {
    const text = textOf(content);
    const last = turns.at(-1);
    // Its chat protocol has developer messages besides system messages.
    if (role === "system" || String(role) === "developer") system.push(text);
    else if (role === "tool") turns.push(["result", answered, text]);
    else if (text !== "" && last?.[0] === role) turns[turns.length - 1] = [role, `${last[1]}${text}`];
    else if (text !== "") turns.push([role, text]);
    for (const { id, function: called } of calls) {
      turns.push(["call", id, called.name, JSON.stringify(JSON.parse(called.arguments))]);
    }
  }
  return { system: system.join(""), turns, tools: (tools ?? []).map((tool) => tool.function.name) };
}

function textOf(content: unknown): string {
  const parts = Array.isArray(content) ? content : [{ text: content ?? "" }];
  const texts = parts.map((part: { text?: unknown }) => String(part.text ?? ""));
  return texts.join("").replace(/\s+/g, "");
}
