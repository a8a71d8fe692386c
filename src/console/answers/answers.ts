/**
 * The forms of all answers of the admin API. `present.ts` and the routes create the answers; a test compares them with
 * these forms.
 */

import { type Static, Type, USAGE_BY, type UsageBy } from "../vocabulary.ts";
import { ACCOUNT_LIMITS, BUDGET_USES, KEY_LIMITS } from "./limits.ts";
import { count, day, flag, instant, keyStatus, list, mapOf, object, oneOf, orNull, page, text, usd } from "./shape.ts";

const accountId = text("The account's id.", "acct_4tR0000abc");
const keyId = text("The key's id, which is no secret.", "key_4tR0000abcXyZ01234");
const codeId = text("The code's id, which is no secret.", "code_0NsPaGdz8KfW2q1T");
const name = text("The account's name.", "alice");
const repeated = flag("Whether an earlier request had already done it, so that this one changed nothing.");
const group = text("A group of the configuration.", "big");
const plan = text("A plan of the configuration.", "pro");

const ACCOUNT = {
  id: accountId,
  name,
  plan,
  status: oneOf(
    "Keys of a suspended account are refused until it is resumed; `closed` is final.",
    "normal",
    "suspended",
    "closed",
  ),
  labels: mapOf("Labels that operators have given the account, by name.", Type.String()),
  balance_usd: usd("The balance of the account"),
  held_usd: usd("What running requests hold", "0.25"),
  available_usd: usd("What a new request may still hold: the balance minus the holds", "9.75"),
  spent_usd: usd("Total of all charges to the balance", "2.50"),
  topped_up_usd: usd("Total of all top-ups and adjustments", "12.50"),
  limits: ACCOUNT_LIMITS,
  notify_below_usd: orNull(
    usd("The balance below which a notice is sent; null: the threshold of the configuration", "5.00"),
  ),
  created_at: instant("When it was created."),
};

export const AccountShape = object("Account", ACCOUNT);
export type AccountAnswer = Static<typeof AccountShape>;
export const AccountPage = page("AccountPage", AccountShape);

const cardKind = text("The card kind.", "day");
const givenKind = orNull(text("The card kind; null for a card that was given before kinds were recorded.", "day"));
const CARD = {
  id: text("The code that was redeemed, or the id of the gift.", "code_0NsPaGdz8KfW2q1T"),
  card: givenKind,
  plan,
  group,
  from: instant("When it starts."),
  until: instant("When it ends."),
  quota_usd: orNull(usd("The quota of the card; null without a quota", "5.00")),
  spent_usd: usd("What was charged to it", "1.00"),
  held_usd: usd("What running requests hold of it", "0.00"),
  rest_usd: orNull(usd("What a new request may still hold of it; null without a quota", "4.00")),
};
const TimeCard = object("TimeCard", CARD);
export type TimeCardAnswer = Static<typeof TimeCard>;

const ListedTimeCard = object("ListedTimeCard", {
  ...CARD,
  running: flag("Whether it has started and has not ended."),
  state: oneOf(
    "`waiting`: it starts later. `used_up`: its whole quota is spent.",
    "waiting",
    "running",
    "used_up",
    "ended",
  ),
  next: orNull(
    object("NextTimeCard", {
      id: text("The card's id.", "code_0NsPaGdz8KfW2q1U"),
      card: givenKind,
      from: instant("When it starts or has started."),
    }),
  ),
});
export type ListedTimeCardAnswer = Static<typeof ListedTimeCard>;

export const AccountWithCards = object("AccountWithCards", {
  ...ACCOUNT,
  budgets: BUDGET_USES,
  entitlements: list(ListedTimeCard),
});
export type AccountWithCardsAnswer = Static<typeof AccountWithCards>;
export const CardList = object("CardList", { account: name, items: list(ListedTimeCard) });

const KEY = {
  id: keyId,
  account: name,
  name: orNull(text("Its display name; null: none.", "Laptop of Alice")),
  group,
  status: keyStatus,
  expires_at: orNull(instant("When the key expires; null: never.")),
  limits: KEY_LIMITS,
  caps: KEY_LIMITS,
  previous_until: orNull(instant("Until when the value before its last rotation works; null: it was never rotated.")),
  created_at: instant("When it was created."),
};
export const KeyShape = object("Key", KEY);
export type KeyAnswer = Static<typeof KeyShape>;
export const ListedKeyShape = object("ListedKey", {
  ...KEY,
  budgets: BUDGET_USES,
  last_used: orNull(
    object("KeyUse", {
      at: instant("When its last request was admitted; may lag by some minutes."),
      from: orNull(text("The client's address, for IPv6 its /64 network; null: not known.", "192.0.2.7")),
      by: orNull(
        text("The client program, the first word of its `user-agent`; null: it sent none.", "claude-cli/2.1.330"),
      ),
    }),
  ),
});
export type ListedKeyAnswer = Static<typeof ListedKeyShape>;
export const KeyPage = page("KeyPage", ListedKeyShape);
export const NewKeyShape = object("NewKey", {
  ...KEY,
  key: text(
    "The key itself. It is shown only in this answer and cannot be retrieved; only its SHA-256 is stored.",
    `sk-${"0".repeat(48)}`,
  ),
});

export const MovementShape = object("Movement", {
  account: name,
  id: text("The caller's id of this movement.", "pay_1"),
  usd: usd("The amount that was added; negative: subtracted"),
  balance_usd: usd("The balance after it"),
  repeated,
});
export type MovementAnswer = Static<typeof MovementShape>;

const COUNTS = {
  usd: usd("What was charged", "2.50"),
  cost_usd: usd("What upstreams are expected to bill, at the cost prices of the routes", "1.80"),
  absorbed_usd: usd("What no client was charged for: the sum of the `absorbed` ledger lines", "0.05"),
  margin_usd: usd("What was charged minus what it cost; negative: a loss", "0.70"),
  requests: count("Requests that were charged; by upstream, those that it may bill, including absorbed ones.", 42),
  input_tokens: count("Input tokens.", 1000),
  cached_input_tokens: count("Input tokens that were read from a cache.", 100),
  cache_write_tokens: count("Input tokens that were written to a cache.", 100),
  output_tokens: count("Output tokens.", 2000),
  reasoning_tokens: count("Output tokens that were reasoning.", 500),
};
const CostedTotal = object("UsageTotal", COUNTS);
export type CostedTotalAnswer = Static<typeof CostedTotal>;

const of = (one: UsageBy) => Type.Optional(text(`Of this ${one}; the member is the one that \`by\` names.`, ""));
const UsageShape = object("Usage", {
  account: of("account"),
  group: of("group"),
  model: of("model"),
  key: of("key"),
  day: of("day"),
  upstream: of("upstream"),
  ...COUNTS,
});
export const UsagePage = page("UsagePage", UsageShape, {
  since: day("The first day, UTC."),
  until: day("The last day, UTC."),
  by: oneOf("What the sums are grouped by.", ...USAGE_BY),
  total: CostedTotal,
  total_usd: usd("Total charged on this page", "2.50"),
});

export const UpstreamUsagePage = page(
  "UpstreamUsagePage",
  object("UpstreamUsage", {
    day: day("The UTC day on which the requests were admitted."),
    model: text("The model's name at the upstream.", "vendor/model-1"),
    ...COUNTS,
  }),
  {
    since: day("The first day, UTC."),
    until: day("The last day, UTC."),
    upstream: text("The upstream.", "east"),
  },
);

const batchId = text("The batch's id.", "batch_0NsPaGdz8KfW2q1T");
const label = text("The label of the batch.", "Spring fair 2027");
const redeemBy = orNull(day("The last UTC day on which a code can be redeemed; null: no limit."));
const WORTH = {
  plan,
  group,
  lasts_seconds: count("How long the card runs.", 86_400),
  starts: oneOf("When its time starts.", "at_redemption", "after_previous"),
  quota_usd: orNull(usd("The quota of the card; null without a quota", "5.00")),
  redeem_by: redeemBy,
  created_at: instant("When it was created."),
};
export const CodeShape = object("Code", {
  id: codeId,
  card: cardKind,
  state: oneOf(
    "`claimed`: it is being redeemed for an account. `expired`: unused, and its last day is over.",
    "unused",
    "expired",
    "void",
    "claimed",
    "redeemed",
  ),
  batch_id: orNull(batchId),
  ...WORTH,
  account_id: orNull(accountId),
  redeemed_at: orNull(instant("When an account claimed it.")),
});
export type CodeAnswer = Static<typeof CodeShape>;
export const CodePage = page("CodePage", CodeShape);
const BATCH = {
  id: batchId,
  label,
  card: cardKind,
  count: count("How many codes were requested.", 10),
  ...WORTH,
};
export const BatchShape = object("CodeBatch", BATCH);
export type BatchAnswer = Static<typeof BatchShape>;
export const BatchPage = page("CodeBatchPage", BatchShape);
const FATES = {
  made: count("Codes in the batch.", 10),
  redeemed: count("Codes that were redeemed.", 4),
  void: count("Codes that were voided.", 1),
};
export const BatchVoidShape = object("CodeBatchVoid", {
  id: batchId,
  label,
  ...FATES,
  voided_now: count("Codes that this request voided.", 1),
  repeated,
});
export const BatchReportShape = object("CodeBatchReport", {
  ...BATCH,
  ...FATES,
  expired: count("Codes that were not redeemed and can no longer be redeemed.", 2),
  unused: count("Codes that can still be redeemed.", 3),
  spent_usd: usd("What was charged to the cards of the redeemed codes", "7.25"),
  redeemed_quota_usd: orNull(usd("The sum of the quotas of these cards; null without a quota", "20.00")),
});
export const NewCodesShape = object("NewCodes", {
  card: cardKind,
  batch_id: orNull(batchId),
  label: orNull(label),
  redeem_by: redeemBy,
  lasts_seconds: WORTH.lasts_seconds,
  quota_usd: WORTH.quota_usd,
  items: list(
    object("NewCode", {
      id: codeId,
      code: text("The code itself. It is shown only in this answer and cannot be retrieved.", "XXXX-XXXX-XXXX-XXXX-X"),
    }),
  ),
});
export type NewCodesAnswer = Static<typeof NewCodesShape>;
export const RedemptionShape = object("Redemption", {
  account: name,
  code_id: codeId,
  card: cardKind,
  entitlement: TimeCard,
  repeated,
});
export type RedemptionAnswer = Static<typeof RedemptionShape>;
export const GiftShape = object("Gift", { account: name, card: cardKind, entitlement: TimeCard, repeated });

const AuditLineShape = object("AuditLine", {
  seq: count("The line's number; it starts again when the process restarts.", 12),
  at: instant("When the write ended."),
  request_id: text("The `x-request-id` of the answer.", "req_0000000000000000000000ab"),
  who: text(
    "`token:` and 8 hex digits of the SHA-256 of the admin token, `operator:session` or `operator:oidc:SESSION` from the operator's pages, or `local`; in the console of owners `owner:NAME:WAY`, `oidc`, or `nobody` for a person who was refused.",
    "token:1f2e3d4c",
  ),
  from: text(
    "The client's address; behind a front of `trust_proxy`, the address that the front forwards. `unix` for a program that connects over a unix socket; `unknown` for an owner whose address no such front has forwarded.",
    "127.0.0.1",
  ),
  what: text("What was done.", "key.create"),
  target: text("The account, key, card or code that was changed.", "alice"),
  outcome: oneOf(
    "`unknown`: the store did not answer; the write may have been made.",
    "done",
    "repeated",
    "refused",
    "unknown",
  ),
  cause: orNull(text("The code of the refusal.", "id_used")),
  facts: mapOf("Names, ids and amounts of the write; never a secret.", Type.String()),
});
export type AuditLineAnswer = Static<typeof AuditLineShape>;
export const AuditPage = page("AuditPage", AuditLineShape, {
  run: text("The run of the gateway that numbers these lines; another run starts again at 1.", "9f86d081884c"),
  newest: count("The number of the newest line; 0 if there are none.", 12),
});

const Epoch = orNull(
  object("Epoch", {
    id: text("The mark that identifies a history of the store.", "9f86d081884c"),
    counted_seconds: count("Seconds that gateways have counted in it.", 86_400),
  }),
);
export const StoreShape = object("StoreState", {
  state: oneOf(
    "`stopped`: the store lost data and waits for an operator; `restoring`: the journal is being replayed into the store.",
    "good",
    "stopped",
    "restoring",
    "unknown",
  ),
  problem: orNull(
    text(
      "Why the store cannot be used now, in the words of `/readyz`; `state` is the verdict from when it was last reachable.",
      "the store does not answer",
    ),
  ),
  waiting_charges: count("Charges that wait for the store.", 0),
  differences: list(
    object("StoreDifference", {
      part: count("The part of the store, from 0.", 0),
      finding: oneOf("How its history differs.", "empty", "older", "another", "told"),
      remembered: Epoch,
      found: Epoch,
    }),
  ),
  confirm: orNull(text("The value that a confirmation must send; null: nothing to confirm.", "a1b2c3d4e5f6")),
});

export type StoreAnswer = Static<typeof StoreShape>;

const UpstreamShape = object("Upstream", {
  name: text("The upstream's name.", "east"),
  health: oneOf(
    "`ejected`: it gets no requests for now. `probe`: the next request decides.",
    "healthy",
    "probe",
    "ejected",
  ),
  reason: orNull(text("Why it is not healthy.", "failures")),
  rest_seconds: count("Seconds until its ejection ends.", 0),
  in_flight: count("Requests that are running there.", 3),
  max_concurrency: count("The maximum number of requests at once.", 200),
  queued: count("Requests in its queue.", 0),
  outcomes: mapOf(
    "Outcomes of attempts within the last `health.window` of the upstream, by kind: ok, local, remote, rate_limited, " +
      "forbidden, not_found (404 or 405: no such path or model there).",
    Type.Integer(),
  ),
  limited_models: list(
    object("LimitedModel", {
      model: text("The model's name at the upstream.", "big-1-2026-08"),
      rest_seconds: count("Seconds until requests for this model are sent to it again.", 4),
    }),
  ),
});
export type UpstreamAnswer = Static<typeof UpstreamShape>;
export const UpstreamList = object("UpstreamList", { items: list(UpstreamShape) });

export const VersionShape = object("Version", {
  version: text("The release.", "0.1.0"),
  build: text("The build of the program: a commit, a digest of the code, or `checkout`.", "5f2b6c1e9a04"),
  node: text("The version of Node that it runs on.", "26.10.0"),
  generation: count("The number of the configuration in force; 1 is the one loaded at the start.", 1),
});
export type VersionAnswer = Static<typeof VersionShape>;

export const Health = object("Health", { alive: flag("Always true.") });
export const Readiness = object("Readiness", {
  ready: flag("Whether the gateway should get traffic."),
  reasons: list(text("Why not.", "draining")),
  notes: list(text("Problems that are no reason to send traffic elsewhere.", "worker 2 is starting")),
});
export type ReadinessAnswer = Static<typeof Readiness>;

/** The form of every refusal. */
export const ErrorShape = object("Error", {
  error: object("ErrorFacts", {
    code: text("A stable code for programs.", "unknown_account"),
    message: text("What is wrong, in a sentence.", "There is no account named `alice`."),
    remedy: text("What to do about it.", "List the accounts (tollgate account list)."),
  }),
});
export type AdminErrorAnswer = Static<typeof ErrorShape>;
