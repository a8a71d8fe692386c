/** The upstream's count in a reply that is a failure: the upstream may bill the operator for it. */

import type { JsonObject } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";
import { totalInput, type Usage } from "../values/tokens/usage.ts";
import { readWholeUsage as readChatUsage } from "./chat/usage.ts";
import type { StreamConverter, UpstreamFault } from "./exchange.ts";
import { readUsage as readMessagesUsage } from "./messages/usage.ts";
import { readUsage as readResponsesUsage } from "./responses/usage.ts";

const READERS: Readonly<Record<Protocol, (json: JsonObject) => Usage | undefined>> = {
  chat: readChatUsage,
  messages: (json) => readMessagesUsage(json.usage),
  responses: readResponsesUsage,
};

/**
 * @param protocol the upstream's.
 * @param json the reply that was found to be a failure.
 * @returns the fault with the tokens that the upstream counted; as it was where it counted none.
 */
export function withCount(fault: UpstreamFault, protocol: Protocol, json: JsonObject): UpstreamFault {
  return counted(fault, READERS[protocol](json));
}

/** Why a stream has failed, with the tokens that the upstream had counted until then; undefined while it has not. */
export function countedFault(stream: Pick<StreamConverter, "fault" | "counts">): UpstreamFault | undefined {
  return stream.fault && counted(stream.fault, stream.counts().usage);
}

function counted(fault: UpstreamFault, usage: Usage | undefined): UpstreamFault {
  const isNothing = usage === undefined || (totalInput(usage) === 0 && usage.output === 0 && !usage.unsplit);
  return isNothing ? fault : { ...fault, usage };
}
