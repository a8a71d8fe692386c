/** A server's whole reply, translated for a client of another protocol. */
import { openExchange } from "../../../src/convert/bridge.ts";
import { type Exchange, isFault } from "../../../src/convert/exchange.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { CONTEXT, PERMITTED, routeTo } from "../../unit/convert/request/translate.ts";
import type { Outcome, Trial } from "./judge.ts";
import type { Json } from "./samples.ts";
import { requestOf } from "./sent.ts";

/** A request that asks for everything that its protocol can show. */
const ASKED: Readonly<Record<Protocol, Json>> = {
  chat: { messages: [{ role: "user", content: "hello" }] },
  messages: { max_tokens: 100, messages: [{ role: "user", content: "hello" }] },
  responses: { input: "hello", include: ["reasoning.encrypted_content"] },
};

const PROBABILITIES: Readonly<Record<Protocol, Json>> = {
  chat: { logprobs: true },
  messages: {},
  responses: { include: ["reasoning.encrypted_content", "message.output_text.logprobs"] },
};

function exchangeOf(upstream: Protocol, client: Protocol): Exchange {
  // Messages servers have no token probabilities, and refuse requests for them.
  const asked = upstream === "messages" ? {} : PROBABILITIES[client];
  const request = requestOf(client, JSON.stringify({ model: "client-model", ...ASKED[client], ...asked }));
  const exchange = openExchange(request, routeTo(upstream), PERMITTED, CONTEXT);
  if (isRefusal(exchange)) throw new Error(`a plain request was refused: ${exchange.facts.param}`);
  return exchange;
}

/** What makes a sample a reply: some content, and a stop reason. */
const REPLY: Readonly<Record<Protocol, (body: Json) => Json>> = {
  chat(body) {
    const [choice = {}] = (body.choices ?? []) as Json[];
    const message = (choice.message ?? {}) as Json;
    const isSilent = message.content === null && !message.tool_calls && !message.function_call && !message.refusal;
    const told = { role: "assistant", ...message, ...(isSilent ? { content: "hello" } : {}) };
    return { usage: CHAT_USAGE, ...body, choices: [{ finish_reason: "stop", ...choice, index: 0, message: told }] };
  },
  messages: (body) => ({ ...body, role: "assistant", type: "message", stop_reason: body.stop_reason ?? "end_turn" }),
  responses: (body) => ({ usage: USAGE, ...body, object: "response", status: body.status ?? "completed" }),
};

/** A usage, so that nothing is estimated from what is left out. */
const CHAT_USAGE = { prompt_tokens: 300, completion_tokens: 400, total_tokens: 700 };
const USAGE = { input_tokens: 300, output_tokens: 400, total_tokens: 700 };

export class ReplyTrial implements Trial {
  /** No header reports on replies. What is left out of them is named only in the document. */
  readonly silent = "named";
  readonly isListKept = true;
  readonly #upstream: Protocol;
  readonly #client: Protocol;

  constructor(upstream: Protocol, client: Protocol) {
    this.#upstream = upstream;
    this.#client = client;
  }

  enters(): boolean {
    return true;
  }

  send(built: Json): Outcome {
    const reply = exchangeOf(this.#upstream, this.#client).whole(
      Buffer.from(JSON.stringify(REPLY[this.#upstream](built))),
    );
    if (isFault(reply)) return { refused: reply.reason, text: "", plan: "", left: [] };
    // The counts are those that are charged, whatever the client is shown.
    const { usage, answeredBy } = reply.counts;
    const plan = JSON.stringify([usage, answeredBy]);
    return { refused: undefined, text: Buffer.from(reply.body).toString(), plan, left: [] };
  }
}
