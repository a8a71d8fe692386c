/** The form of the answer of `POST /admin/v1/explain`; `src/endpoints/explain/explanation.ts` creates it. */

import type { Static } from "../vocabulary.ts";
import { anything, count, flag, keyStatus, list, object, oneOf, orNull, text, usd } from "./shape.ts";

const Bucket = orNull(
  object("BucketState", {
    remaining: count("What is left now.", 42),
    reset_seconds: count("Seconds until the bucket is full again.", 12),
  }),
);

/** What the owner of a key may know about a route to a model server. */
const ownersRoute = {
  protocol: oneOf("The upstream's protocol.", "chat", "messages", "responses"),
  carries: flag("Whether it can carry the request."),
  translation: orNull(text("How the request is translated.", "none needed")),
  dropped: list(text("A member that is removed.", "top_k")),
  refusal: orNull(
    object("RouteRefusal", {
      cause: text("The cause.", "untranslatable"),
      param: orNull(text("The member at fault.", "tools")),
      words: text("Why.", "Refused: untranslatable."),
    }),
  ),
  rules: list(anything("A rule of the operator that applies; `kind` says which.")),
};

export const ExplanationShape = object("Explanation", {
  object: oneOf("Always `explanation`.", "explanation"),
  protocol: oneOf("The protocol of the request.", "chat", "messages", "responses"),
  model: orNull(text("The model name in the request.", "big-1")),
  stream: orNull(flag("Whether a stream is asked for.")),
  expected: object("ExpectedAnswer", {
    status: count("The HTTP status.", 200),
    cause: orNull(text("The precise cause of a refusal.", "insufficient_balance")),
    identifier: orNull(text("The error identifier that clients get with it.", "permission_error")),
    message: text("The message.", "The request would be sent to a model server."),
    remedy: orNull(text("What to do about it.", "Top up the balance.")),
    param: orNull(text("The member of the body at fault.", "max_tokens")),
    retry_after_s: orNull(count("Seconds until the same request would pass.", 3)),
  }),
  steps: list(
    object("DecisionStep", {
      step: text("What is decided in this step.", "funds"),
      ok: orNull(flag("Null: not reached.")),
      words: text("The decision and its reason.", "The balance pays."),
    }),
  ),
  key: object("ExplainedKey", {
    id: text("The key's id.", "key_4tR0000abcXyZ01234"),
    status: keyStatus,
    group: text("Its group.", "big"),
  }),
  account: object("ExplainedAccount", {
    id: text("The account's id.", "acct_4tR0000abc"),
    plan: text("Its base plan.", "pro"),
    balance_usd: usd("The balance of the account"),
    held_usd: usd("What running requests hold", "0.25"),
    available_usd: usd("What a new request may still hold", "9.75"),
  }),
  price: orNull(
    object("ExplainedPrice", {
      input_tokens_max: count("Maximum number of input tokens.", 12),
      output_tokens_max: count("Maximum number of output tokens.", 8192),
      worst_usd: usd("The highest possible cost", "0.08"),
      least_usd: usd("The highest possible cost of the shortest useful answer", "0.001"),
      multiplier: text("The group's multiplier.", "1.00"),
      input_usd_per_million: usd("The price of a million input tokens", "1.25"),
      output_usd_per_million: usd("The price of a million output tokens"),
    }),
  ),
  hold: orNull(
    object("ExplainedHold", {
      usd: usd("The amount that would be held", "0.08"),
      paid_by: text("`balance`, or the time card that pays.", "balance"),
      metered: flag("Whether it counts against the balance or a quota."),
    }),
  ),
  clamped: orNull(
    text(
      "The output limit and the thinking budget that are sent, if they are lower than those in the request.",
      "max_tokens=200",
    ),
  ),
  limits: orNull(
    object("ExplainedLimits", {
      checked: flag("Whether the current state of the limits was read."),
      counted_per: oneOf("Whether the limits count per key or per account.", "key", "account"),
      requests_per_minute: orNull(count("The limit; null without one.", 60)),
      tokens_per_minute: orNull(count("The limit; null without one.", 400_000)),
      concurrency: count("The maximum number of requests at once.", 100),
      requests: Bucket,
      tokens: Bucket,
      in_flight: orNull(count("Requests that are running now.", 2)),
      tokens_of_this_request: orNull(count("The tokens that this request takes from the limit.", 12)),
    }),
  ),
  routes: list(
    object("ExplainedRoute", {
      upstream: text("The upstream's name.", "east"),
      upstream_model: text("The model's name at the upstream.", "big-1-2026-08"),
      health: oneOf("The health of the upstream at this process.", "healthy", "probe", "ejected", "unknown"),
      ...ownersRoute,
    }),
  ),
});
export type ExplanationAnswer = Static<typeof ExplanationShape>;

/** The same for the owner of the key, without the names and the health of upstreams. */
export const OwnExplanationShape = object("OwnExplanation", {
  ...ExplanationShape.properties,
  routes: list(object("OwnExplainedRoute", ownersRoute)),
});
export type OwnExplanationAnswer = Static<typeof OwnExplanationShape>;
