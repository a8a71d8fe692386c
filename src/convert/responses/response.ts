/** The response object, which every event about the response repeats (docs/translation-rules.md rules 44 and 45). */

import { type JsonObject, objectOf } from "../../values/json-object.ts";
import { NO_USAGE, type Usage } from "../../values/tokens/usage.ts";
import type { ConvertContext } from "../exchange.ts";
import type { ReplyPlan } from "../hub.ts";
import { type Stop, stopFor } from "../hub-reply.ts";
import { knownFinish } from "../rules/finish-words.ts";
import { isTruncated } from "../stream-encoder.ts";
import { writeUsage } from "./usage.ts";

/** Id, creation time and tier of a response. */
export interface ResponseIdentity {
  readonly id: string;
  readonly createdS: number;
  readonly tier: string | undefined;
}

/** A new response id: `resp_` and 32 hexadecimal digits (rule 7). */
export function responseId(context: ConvertContext): string {
  return `resp_${Buffer.from(context.randomId(16), "latin1").toString("hex")}`;
}

/** A response that is in progress. */
export function responseInProgress(identity: ResponseIdentity, plan: ReplyPlan): JsonObject {
  return responseWith(identity, plan, {
    status: "in_progress",
    completed_at: null,
    incomplete_details: null,
    output: [],
    usage: null,
  });
}

/** A response that has ended, completed or incomplete. */
export function responseEnded(
  identity: ResponseIdentity,
  plan: ReplyPlan,
  context: ConvertContext,
  ending: { readonly stop: Stop; readonly output: readonly JsonObject[]; readonly usage: Usage | undefined },
): JsonObject {
  const reason = incompleteReason(ending.stop);
  return responseWith(identity, plan, {
    status: reason === undefined ? "completed" : "incomplete",
    completed_at: reason === undefined ? Math.max(identity.createdS, context.nowS) : null,
    incomplete_details: reason === undefined ? null : { reason },
    output: ending.output,
    usage: writeUsage(ending.usage ?? NO_USAGE),
  });
}

/** A response in progress, for a server that has sent its content only. */
export function responseBegun(model: string, context: ConvertContext): JsonObject {
  const head = { id: responseId(context), object: "response", created_at: context.nowS, model, status: "in_progress" };
  return { ...head, error: null, incomplete_details: null, output: [], usage: null };
}

function responseWith({ id, createdS, tier }: ResponseIdentity, plan: ReplyPlan, members: JsonObject): JsonObject {
  const head = { id, object: "response", created_at: createdS, model: plan.model, error: null };
  return { ...head, ...members, ...plan.echo, service_tier: tier };
}

const OWN_REASONS: ReadonlySet<unknown> = new Set(["max_output_tokens", "content_filter", "max_messages", "steered"]);

/**
 * The protocol's own reason for an unknown one why a response is incomplete (rule 43); undefined if it is the
 * protocol's own.
 */
export function ownIncompleteReason(response: JsonObject): string | undefined {
  const word = objectOf(response.incomplete_details)?.reason;
  const finish = OWN_REASONS.has(word) ? undefined : knownFinish(word);
  return finish === undefined || finish === "failure" ? undefined : incompleteReason(stopFor(finish));
}

/** Why a response is incomplete (rule 43); undefined when it is not. */
export function incompleteReason(stop: Stop): string | undefined {
  if (isTruncated(stop)) return "max_output_tokens";
  return stop.reason === "refusal" ? "content_filter" : undefined;
}
