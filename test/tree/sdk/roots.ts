/** The types at which `walk.ts` begins: what the official SDKs send and read, by protocol. */
import type {
  MessageCreateParamsBase as BetaCreate,
  BetaMessage,
  BetaRawMessageStreamEvent,
} from "@anthropic-ai/sdk/resources/beta/messages/messages";
import type {
  Message,
  MessageCreateParamsBase,
  RawMessageStreamEvent,
} from "@anthropic-ai/sdk/resources/messages/messages";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionCreateParamsBase,
} from "openai/resources/chat/completions/completions";
import type { Response, ResponseCreateParamsBase, ResponseStreamEvent } from "openai/resources/responses/responses";

/** Named by their contents. If there are two, the second has the members of the beta versions. */
export interface Roots {
  readonly "chat request": ChatCompletionCreateParamsBase;
  readonly "messages request": MessageCreateParamsBase;
  readonly "messages beta request": BetaCreate;
  readonly "responses request": ResponseCreateParamsBase;
  readonly "chat reply": ChatCompletion;
  readonly "messages reply": Message;
  readonly "messages beta reply": BetaMessage;
  readonly "responses reply": Response;
  readonly "chat event": ChatCompletionChunk;
  readonly "messages event": RawMessageStreamEvent;
  readonly "messages beta event": BetaRawMessageStreamEvent;
  readonly "responses event": ResponseStreamEvent;
}
