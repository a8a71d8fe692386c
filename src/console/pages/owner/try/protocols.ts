/** The three protocols as this page uses them: the requests, and the events of an answer. */

interface TalkTurn {
  readonly role: "user" | "assistant";
  readonly text: string;
}

/** A conversation to continue. */
export interface TrialConversation {
  readonly model: string;
  readonly system: string;
  readonly maxTokens: number;
  readonly turns: readonly TalkTurn[];
}

/** What one event adds to an answer. */
export interface Piece {
  readonly text?: string;
  readonly thinking?: string;
  readonly input?: number;
  readonly output?: number;
  /** Why the stream failed, in the gateway's words. */
  readonly failed?: string;
  readonly isEnd?: boolean;
}

export type ProtocolName = "chat" | "messages" | "responses";
export const PROTOCOL_NAMES: readonly ProtocolName[] = ["chat", "messages", "responses"];

interface Spoken {
  readonly path: string;
  readonly headersOf: (key: string) => Readonly<Record<string, string>>;
  readonly bodyOf: (conversation: TrialConversation) => object;
  readonly piecesOf: (event: Json) => Piece;
}

type Json = Readonly<Record<string, unknown>>;

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

const part = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {});
const said = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const tokens = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** Removes the members that an event does not have. */
function piece(members: { readonly [K in keyof Piece]: Piece[K] | undefined }): Piece {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Piece;
}

const turnsOf = ({ turns }: TrialConversation) => turns.map(({ role, text }) => ({ role, content: text }));

export const SPOKEN: Readonly<Record<ProtocolName, Spoken>> = {
  chat: {
    path: "/v1/chat/completions",
    headersOf: bearer,
    bodyOf: (conversation) => ({
      model: conversation.model,
      messages: [
        ...(conversation.system ? [{ role: "system", content: conversation.system }] : []),
        ...turnsOf(conversation),
      ],
      max_tokens: conversation.maxTokens,
      stream: true,
      stream_options: { include_usage: true },
    }),
    piecesOf(event) {
      const [choice] = Array.isArray(event.choices) ? event.choices : [];
      const delta = part(part(choice).delta);
      const usage = part(event.usage);
      return piece({
        text: said(delta.content),
        thinking: said(delta.reasoning_content) ?? said(delta.reasoning),
        input: tokens(usage.prompt_tokens),
        output: tokens(usage.completion_tokens),
        failed: said(part(event.error).message),
        isEnd: said(part(choice).finish_reason) !== undefined || undefined,
      });
    },
  },
  messages: {
    path: "/v1/messages",
    headersOf: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
    bodyOf: (conversation) => ({
      model: conversation.model,
      ...(conversation.system && { system: conversation.system }),
      messages: turnsOf(conversation),
      max_tokens: conversation.maxTokens,
      stream: true,
    }),
    piecesOf(event) {
      const delta = part(event.delta);
      const usage = { ...part(part(event.message).usage), ...part(event.usage) };
      const input = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"].map((name) =>
        tokens(usage[name]),
      );
      return piece({
        text: said(delta.text),
        thinking: said(delta.thinking),
        input: input.some((one) => one !== undefined)
          ? input.reduce<number>((all, one) => all + (one ?? 0), 0)
          : undefined,
        output: tokens(usage.output_tokens),
        failed: event.type === "error" ? (said(part(event.error).message) ?? "error") : undefined,
        isEnd: event.type === "message_stop" || undefined,
      });
    },
  },
  responses: {
    path: "/v1/responses",
    headersOf: bearer,
    bodyOf: (conversation) => ({
      model: conversation.model,
      ...(conversation.system && { instructions: conversation.system }),
      input: turnsOf(conversation),
      max_output_tokens: conversation.maxTokens,
      store: false,
      stream: true,
    }),
    piecesOf(event) {
      const type = String(event.type);
      const response = part(event.response);
      const usage = part(response.usage);
      const hasFailed = type === "error" || type === "response.failed";
      const isThought = type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta";
      return piece({
        text: type === "response.output_text.delta" ? said(event.delta) : undefined,
        thinking: isThought ? said(event.delta) : undefined,
        input: tokens(usage.input_tokens),
        output: tokens(usage.output_tokens),
        failed: hasFailed ? (said(event.message) ?? said(part(response.error).message) ?? type) : undefined,
        isEnd: type === "response.completed" || type === "response.incomplete" || undefined,
      });
    },
  },
};
