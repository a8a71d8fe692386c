/** The form of what `POST /admin/v1/explain` answers; `src/endpoints/explain/explanation.ts` makes it. */

import type { Static } from "../vocabulary.ts";
import { anything, count, flag, keyStatus, list, object, oneOf, orNull, text, usd } from "./shape.ts";

const Bucket = orNull(
  object("BucketState", {
    remaining: count("What may be taken now.", 42),
    reset_seconds: count("Until the bucket is full again.", 12),
  }),
);

/** What the owner of a key may know of a way to a model server. */
const ownersRoute = {
  protocol: oneOf("The upstream's protocol.", "chat", "messages", "responses"),
  carries: flag("Whether it can carry the request."),
  translation: orNull(text("What becomes of the request on its way.", "none needed")),
  dropped: list(text("A member that is left out.", "top_k")),
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
  object: oneOf("What this is.", "explanation"),
  protocol: oneOf("The protocol of the request.", "chat", "messages", "responses"),
  model: orNull(text("The model as it was typed.", "big-1")),
  stream: orNull(flag("Whether a stream is asked for.")),
  expected: object("ExpectedAnswer", {
    status: count("The HTTP status.", 200),
    cause: orNull(text("The precise cause of a refusal.", "insufficient_balance")),
    identifier: orNull(text("The identifier that goes with it.", "permission_error")),
    message: text("The message.", "The request would be sent to a model server."),
    remedy: orNull(text("What to do about it.", "Top up the balance.")),
    param: orNull(text("The member of the body at fault.", "max_tokens")),
    retry_after_s: orNull(count("Seconds until the same request would pass.", 3)),
  }),
  steps: list(
    object("DecisionStep", {
      step: text("What is decided.", "funds"),
      ok: orNull(flag("Null: not reached.")),
      words: text("How it is decided.", "The balance pays."),
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
    balance_usd: usd("What it has"),
    held_usd: usd("What running requests have set aside", "0.25"),
    available_usd: usd("What a new request may still hold", "9.75"),
  }),
  price: orNull(
    object("ExplainedPrice", {
      input_tokens_max: count("Input tokens at most.", 12),
      output_tokens_max: count("Output tokens at most.", 8192),
      worst_usd: usd("The most it can cost", "0.08"),
      least_usd: usd("The most that its least useful form can cost", "0.001"),
      multiplier: text("The group's multiplier.", "1.00"),
      input_usd_per_million: usd("The price of a million input tokens", "1.25"),
      output_usd_per_million: usd("The price of a million output tokens"),
    }),
  ),
  hold: orNull(
    object("ExplainedHold", {
      usd: usd("What would be set aside", "0.08"),
      paid_by: text("`balance`, or the time card that pays.", "balance"),
      metered: flag("Whether it is counted against money or a quota."),
    }),
  ),
  clamped: orNull(
    text(
      "The output limit and the thinking budget that are sent, where they are lower than those asked for.",
      "max_tokens=200",
    ),
  ),
  limits: orNull(
    object("ExplainedLimits", {
      checked: flag("Whether the state of the limits was read."),
      counted_per: oneOf("Whom the limits count for.", "key", "account"),
      requests_per_minute: orNull(count("The limit; null without one.", 60)),
      tokens_per_minute: orNull(count("The limit; null without one.", 400_000)),
      concurrency: count("The limit of requests at once.", 100),
      requests: Bucket,
      tokens: Bucket,
      in_flight: orNull(count("Requests that run now.", 2)),
      tokens_of_this_request: orNull(count("What it would take of the tokens.", 12)),
    }),
  ),
  routes: list(
    object("ExplainedRoute", {
      upstream: text("The upstream's name.", "east"),
      upstream_model: text("The model's name there.", "big-1-2026-08"),
      health: oneOf("How the upstream does at this process.", "healthy", "probe", "ejected", "unknown"),
      ...ownersRoute,
    }),
  ),
});
export type ExplanationAnswer = Static<typeof ExplanationShape>;

/** The same for the owner of the key: without names of upstreams, and how they do. */
export const OwnExplanationShape = object("OwnExplanation", {
  ...ExplanationShape.properties,
  routes: list(object("OwnExplainedRoute", ownersRoute)),
});
export type OwnExplanationAnswer = Static<typeof OwnExplanationShape>;
