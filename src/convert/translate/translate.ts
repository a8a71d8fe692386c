/**
 * Translation, for a client and an upstream of different protocols. The request goes through the hub form to the
 * upstream's protocol, the reply back the same way. What cannot be carried is refused, or dropped and named
 * (ARCHITECTURE.md promise 9).
 */

import { isRefusal, type Refusal, refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { billedUsage } from "../../values/tokens/usage.ts";
import { asBuffer } from "../../wire/utf8.ts";
import { AnsweredModel } from "../answered-model.ts";
import { decodeReply as decodeChatReply } from "../chat/reply-decode.ts";
import { encodeReply as encodeChatReply } from "../chat/reply-encode.ts";
import * as chatRequest from "../chat/request.ts";
import { ChatStreamDecoder } from "../chat/stream-decode.ts";
import { ChatStreamEncoder } from "../chat/stream-encode.ts";
import { withCount } from "../counted-fault.ts";
import type {
  ConvertContext,
  Exchange,
  OpenExchange,
  Permitted,
  RouteFacts,
  StreamConverter,
  UpstreamFault,
  WholeReply,
} from "../exchange.ts";
import type { HubFacts, HubRequest, ReplyPlan, TranslatedRequest } from "../hub.ts";
import type { HubReply } from "../hub-reply.ts";
import { parseWithDigits, withDigits } from "../json-exact.ts";
import { decodeReply as decodeMessagesReply } from "../messages/reply-decode.ts";
import { encodeReply as encodeMessagesReply } from "../messages/reply-encode.ts";
import * as messagesRequest from "../messages/request.ts";
import { MessagesStreamDecoder } from "../messages/stream-decode.ts";
import { MessagesStreamEncoder } from "../messages/stream-encode.ts";
import { refusedStateMember } from "../passthrough/request.ts";
import { withoutUnlisted } from "../passthrough/unlisted.ts";
import type { DecodedReply } from "../reply/decoder.ts";
import { parseReply } from "../reply/parse.ts";
import { REPLY_BLOCKS_MAX } from "../reply/sink.ts";
import { lostReferences } from "../responses/references/opening.ts";
import { decodeReply as decodeResponsesReply } from "../responses/reply-decode.ts";
import { encodeReply as encodeResponsesReply } from "../responses/reply-encode.ts";
import * as responsesRequest from "../responses/request.ts";
import { ResponsesStreamDecoder } from "../responses/stream-decode.ts";
import { ResponsesStreamEncoder } from "../responses/stream-encode.ts";
import { translationHeader } from "../rules/losses.ts";
import { refusedOff } from "../rules/thinking.ts";
import { refusedArguments } from "../rules/tool-wrap.ts";
import type { StreamEncoder } from "../stream-encoder.ts";
import { stopReply } from "./stop-emulation.ts";
import { areWatchable } from "./stop-matcher.ts";
import { type ReplyDecoder, TranslatedStream } from "./stream.ts";

/** The codecs of one protocol: decode a client's request, encode it for an upstream, and the same for replies. */
interface Codec {
  decodeRequest(json: Readonly<JsonObject>, facts: HubFacts): HubRequest | Refusal;
  encodeRequest(
    hub: HubRequest,
    route: RouteFacts,
    permitted: Permitted,
    context: ConvertContext,
  ): TranslatedRequest | Refusal;
  decodeReply(json: JsonObject, plan: ReplyPlan, context: ConvertContext): DecodedReply | UpstreamFault;
  encodeReply(reply: HubReply, plan: ReplyPlan, context: ConvertContext): Uint8Array;
  readonly StreamDecoder: new (plan: ReplyPlan, context: ConvertContext) => ReplyDecoder;
  readonly StreamEncoder: new (plan: ReplyPlan, context: ConvertContext) => StreamEncoder;
}

const CODECS: Readonly<Record<Protocol, Codec>> = {
  chat: {
    ...chatRequest,
    decodeReply: decodeChatReply,
    encodeReply: encodeChatReply,
    StreamDecoder: ChatStreamDecoder,
    StreamEncoder: ChatStreamEncoder,
  },
  messages: {
    ...messagesRequest,
    decodeReply: decodeMessagesReply,
    encodeReply: encodeMessagesReply,
    StreamDecoder: MessagesStreamDecoder,
    StreamEncoder: MessagesStreamEncoder,
  },
  responses: {
    ...responsesRequest,
    decodeReply: decodeResponsesReply,
    encodeReply: encodeResponsesReply,
    StreamDecoder: ResponsesStreamDecoder,
    StreamEncoder: ResponsesStreamEncoder,
  },
};

/**
 * The most values and names in a request that is translated. Translation is one turn of the event loop: 100 ms for this
 * many, on a current machine. A conversation of a million tokens with three hundred tools has half of it.
 */
const VALUES_MAX = 200_000;

/**
 * Opens an exchange on a route of another protocol than the client's; a refusal if the route cannot carry the request.
 */
export const openTranslation: OpenExchange = (request, route, permitted, context) => {
  if (request.scan.tokens > VALUES_MAX) return refusal("body_too_large", { detail: TOO_MANY });
  const state = refusedStateMember(request);
  if (state) return state;
  // A translation carries only listed members; members that the upstream's configuration passes are left out too.
  const listed = withoutUnlisted(request, {}, permitted);
  if (isRefusal(listed)) return listed;
  const lost = lostReferences(request, permitted);
  if (isRefusal(lost)) return lost;
  const json = withDigits(listed.json, () => asBuffer(request.body).toString());
  const hub = CODECS[request.protocol].decodeRequest(json, request);
  if (isRefusal(hub)) return hub;
  const tooMany = refusedArguments(hub.turns);
  if (tooMany) return tooMany;
  const refused = refusedOff(hub.reasoning.off ? hub.reasoning.param : undefined, route);
  if (refused) return refused;
  const encoded = CODECS[route.protocol].encodeRequest(hub, route, permitted, context);
  if (isRefusal(encoded)) return encoded;
  if (!areWatchable(encoded.plan.emulateStop)) return refuseStops(request.protocol);
  const declared = { ...encoded, dropped: [...lost, ...encoded.dropped] };
  return new Translation(declared, listed.dropped, context, permitted.inputEstimate ?? 0);
};

const TOO_MANY = `It has more than ${VALUES_MAX} values and names, and the model is served in another protocol.`;

function refuseStops(client: Protocol): Refusal {
  const param = client === "messages" ? "stop_sequences" : "stop";
  return refusal("untranslatable", {
    param,
    detail: `${param} has more strings or characters than can be watched for.`,
  });
}

/**
 * A reply with more blocks is refused anyway when its blocks are read; parsing 500,000 blocks first takes half a
 * second.
 */
const LIMITS = { blocksMax: REPLY_BLOCKS_MAX };

class Translation implements Exchange {
  readonly request: Exchange["request"];
  readonly translation: string;
  readonly #plan: ReplyPlan;
  readonly #context: ConvertContext;
  readonly #inputEstimate: number;

  /** @param unlisted members of the client's body that no protocol lists. */
  constructor(
    { body, dropped, unlisted: unread, ignored, tier, plan }: TranslatedRequest,
    unlisted: readonly string[],
    context: ConvertContext,
    inputEstimate: number,
  ) {
    const left = [...dropped, ...unread, ...unlisted];
    this.request = { body, dropped: left, ignored, unlisted: unread.length + unlisted.length, tier };
    this.translation = translationHeader(left, ignored);
    this.#plan = plan;
    this.#context = context;
    this.#inputEstimate = inputEstimate;
  }

  whole(body: Uint8Array): WholeReply | UpstreamFault {
    const { json, fault } = parseReply(body, this.#plan.upstream, parseWithDigits, LIMITS);
    if (fault) return fault;
    const decoded = CODECS[this.#plan.upstream].decodeReply(json, this.#plan, this.#context);
    if ("reason" in decoded) return withCount(decoded, this.#plan.upstream, json);
    const reply = stopReply(decoded.reply, this.#plan.emulateStop);
    const answered = new AnsweredModel(this.#plan.upstreamModel, this.#plan.answersAs);
    answered.see(json);
    const { produced } = decoded;
    // The client is shown the usage that it is charged for, even if the server has not counted all of it.
    const { usage } = billedUsage(reply.usage, {
      final: true,
      outputEstimate: produced.tokens,
      inputEstimate: this.#inputEstimate,
    });
    return {
      body: CODECS[this.#plan.client].encodeReply({ ...reply, usage }, this.#plan, this.#context),
      counts: { usage: reply.usage, final: true, produced, ...answered.noted },
    };
  }

  stream(): StreamConverter {
    const { StreamDecoder } = CODECS[this.#plan.upstream];
    const { StreamEncoder } = CODECS[this.#plan.client];
    return new TranslatedStream(
      new StreamDecoder(this.#plan, this.#context),
      new StreamEncoder(this.#plan, this.#context),
      { emulateStop: this.#plan.emulateStop, inputEstimate: this.#inputEstimate },
    );
  }
}
