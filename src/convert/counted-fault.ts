/** Adds the upstream's usage to the fault of a failed reply, because the upstream may bill the operator for it. */

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
 * Adds the usage of a failed whole reply to its fault.
 * @param protocol the upstream's.
 * @param json the failed reply.
 * @returns the fault with the upstream's usage; the unchanged fault if the reply has none.
 */
export function withCount(fault: UpstreamFault, protocol: Protocol, json: JsonObject): UpstreamFault {
  return counted(fault, READERS[protocol](json));
}

/**
 * The fault of a failed stream, with the usage that the upstream had reported by then; undefined if it has not failed.
 */
export function countedFault(stream: Pick<StreamConverter, "fault" | "counts">): UpstreamFault | undefined {
  return stream.fault && counted(stream.fault, stream.counts().usage);
}

function counted(fault: UpstreamFault, usage: Usage | undefined): UpstreamFault {
  const isNothing = usage === undefined || (totalInput(usage) === 0 && usage.output === 0 && !usage.unsplit);
  return isNothing ? fault : { ...fault, usage };
}
