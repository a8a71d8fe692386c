/**
 * Puts a forecast into words: the decisions in order, the expected answer, prices, limits and routes. The owner of a
 * key sees what concerns the request; names of upstreams and the texts of rules are only for the operator.
 */
import { besideLimit } from "../../admit/terms.ts";
import type { ExplanationAnswer, OwnExplanationAnswer } from "../../console/routes/explain.ts";
import { render } from "../../request/refuse.ts";
import { type Bucket, bucketState, drain } from "../../store/buckets.ts";
import { runningCards } from "../../store/decision.ts";
import { type Cause, isRefusal, type Refusal } from "../../values/errors.ts";
import { formatUsd } from "../../values/money.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { RuleAction } from "../../values/rules.ts";
import { quoted } from "../../values/words/shown.ts";
import type { Forecast, RouteForecast } from "./explain.ts";

const MS_PER_S = 1_000;

const STEPS = [
  "gateway",
  "key",
  "body",
  "model",
  "price",
  "card",
  "plan",
  "group",
  "funds",
  "limits",
  "routes",
] as const;
type StepName = (typeof STEPS)[number];

/** Where each cause is decided; causes that are not listed are about the body. */
const DECIDED_AT: Partial<Readonly<Record<Cause, StepName>>> = {
  journal_full: "gateway",
  unknown_key: "key",
  revoked_key: "key",
  suspended: "key",
  expired_key: "key",
  address_not_allowed: "key",
  unknown_model: "model",
  no_entitlement: "card",
  not_in_plan: "plan",
  group_mismatch: "group",
  model_not_allowed: "group",
  quota_used: "funds",
  insufficient_balance: "funds",
  key_budget: "funds",
  account_budget: "funds",
  requests: "limits",
  tokens: "limits",
  concurrency: "limits",
};

type RouteAnswer = ExplanationAnswer["routes"][number];
type OwnersRouteAnswer = OwnExplanationAnswer["routes"][number];

/** The explanation for the operator. */
export function explainedToOperator(forecast: Forecast, upstreamUnavailableStatus: 403 | 503): ExplanationAnswer {
  const routes = forecast.routes.map(({ health, ...one }): RouteAnswer => {
    const { upstream, upstreamModel } = one.route;
    return { upstream, upstream_model: upstreamModel, health: health ?? "unknown", ...routeOf(one, "operator") };
  });
  return { ...explained(forecast, upstreamUnavailableStatus), routes };
}

/** The explanation for the owner of the key. */
export function explainedToOwner(forecast: Forecast, upstreamUnavailableStatus: 403 | 503): OwnExplanationAnswer {
  const routes = forecast.routes.map((one) => routeOf(one, "owner"));
  return { ...explained(forecast, upstreamUnavailableStatus), routes };
}

function explained(forecast: Forecast, upstreamUnavailableStatus: 403 | 503): Omit<ExplanationAnswer, "routes"> {
  const { question, seen, permit } = forecast;
  const { key, account } = seen.view;
  return {
    object: "explanation",
    protocol: question.protocol,
    model: isRefusal(question.read) ? null : quoted(question.read.envelope.model),
    stream: isRefusal(question.read) ? null : question.read.envelope.stream,
    expected: expected(forecast.refused, question.protocol, upstreamUnavailableStatus),
    steps: stepsOf(forecast),
    key: { id: key.id, status: key.status, group: key.group },
    account: {
      id: account.id,
      plan: account.plan,
      balance_usd: formatUsd(account.balance),
      held_usd: formatUsd(seen.held),
      available_usd: formatUsd(account.balance - seen.held),
    },
    price: priceOf(forecast),
    hold: permit
      ? { usd: formatUsd(permit.hold), paid_by: permit.entitlement ?? "balance", metered: !permit.unmetered }
      : null,
    clamped: permit?.clamped ?? null,
    limits: limitsOf(forecast),
  };
}

function expected(
  refused: Refusal | undefined,
  protocol: Protocol,
  unavailable: 403 | 503,
): ExplanationAnswer["expected"] {
  if (!refused) {
    const message = "The request would be sent to a model server.";
    return { status: 200, cause: null, identifier: null, message, remedy: null, param: null, retry_after_s: null };
  }
  const { answer, status } = render(refused, protocol, "", unavailable);
  const { cause, identifier, message, remedy, param, retryAfterS } = answer;
  return { status, cause, identifier, message, remedy, param, retry_after_s: retryAfterS ?? null };
}

/** The decisions in the order in which they are made (first match wins). */
function stepsOf(forecast: Forecast): ExplanationAnswer["steps"] {
  const { refused, group } = forecast;
  const at = refused && refusedAt(refused, forecast);
  const steps = STEPS.filter((step) => step !== "card" || group?.kind === "time_card" || at === "card");
  const stop = at === undefined ? steps.length : steps.indexOf(at);
  return steps.map((step, index) => {
    if (index > stop) return { step, ok: null, words: "not reached" };
    if (index === stop) return { step, ok: false, words: wordsOf(refused as Refusal, forecast) };
    return { step, ok: true, words: WORDS[step](forecast) };
  });
}

function refusedAt({ cause }: Refusal, { unpriced, permit }: Forecast): StepName {
  if (permit) return "routes";
  return unpriced && cause === "unsupported_parameter" ? "price" : (DECIDED_AT[cause] ?? "body");
}

function detailOf(refused: Refusal): string {
  return refused.facts.detail ?? `Refused: ${refused.cause}.`;
}

function wordsOf(refused: Refusal, { meant, group, seen }: Forecast): string {
  // Keys outlive a group that was renamed or removed. The client only gets the message that the group does not serve
  // the model.
  if (refused.cause === "group_mismatch" && group === undefined)
    return `The key's group ${quoted(seen.view.key.group)} is not in the configuration: it was renamed or removed.`;
  const guess = refused.cause === "unknown_model" && meant !== undefined ? ` Did you mean ${meant}?` : "";
  return quoted(detailOf(refused) + guess, 400);
}

const WORDS: Readonly<Record<StepName, (forecast: Forecast) => string>> = {
  gateway: () => "The gateway can record charges.",
  key: ({ seen: { view } }) => `The key ${view.key.id} of the account ${view.account.id} is valid.`,
  body({ question: { read, protocol } }) {
    if (isRefusal(read)) return "";
    const { limit, textBytes, choices } = read.envelope;
    const asked = limit ? `${limit.field}=${limit.value}` : "no output limit of its own";
    return `A valid ${protocol} body: ${textBytes} bytes of text, ${asked}, choices: ${choices}.`;
  },
  model: ({ model }) => `${model?.name ?? ""} is in the catalog, for the plans: ${(model?.plans ?? []).join(", ")}.`,
  price({ question: { read }, offered, terms }) {
    if (!terms) return "";
    // A stream without a limit is held in further steps of the same size.
    const openEnded = !isRefusal(read) && read.envelope.stream && read.envelope.limit === undefined;
    const bound = openEnded ? "at first" : "at most";
    const tokens = `${offered?.heldTokens ?? terms.inputTokens} input and ${(terms.outputLimit + besideLimit(terms)) * terms.choices} output`;
    const most = offered ? `; ${bound} ${formatUsd(offered.holdFull)} USD` : "";
    return `Everything asked for has a price: ${bound} ${tokens} tokens${most}.`;
  },
  card: ({ seen: { view } }) => {
    const cards = view.entitlements.filter(({ group }) => group === view.key.group);
    const running = runningCards(cards, view.storeTimeMs);
    const kinds = running.map(({ card, id }) => card ?? id).join(", ");
    const begins = Math.min(...cards.map(({ fromMs }) => fromMs).filter((fromMs) => fromMs > view.storeTimeMs));
    const next = Number.isFinite(begins) ? `; another one begins at ${new Date(begins).toISOString()}` : "";
    return `Running time cards of the group: ${running.length}${kinds && ` (${kinds})`}${next}.`;
  },
  plan({ seen: { view } }) {
    const plans = new Set([
      view.account.plan,
      ...runningCards(view.entitlements, view.storeTimeMs).map(({ plan }) => plan),
    ]);
    return `The model is in a plan of the account: ${[...plans].join(", ")}.`;
  },
  group: ({ group }) => `The group ${group?.name ?? ""} serves the model.`,
  funds({ permit, offered }) {
    if (!permit) return "";
    if (permit.unmetered) return `The card ${permit.entitlement} pays and has no quota: nothing is held.`;
    const payer = permit.entitlement ? `The card ${permit.entitlement}` : "The balance";
    const whole = permit.hold === (permit.heldWorstCase ? offered?.worstCase.holdFull : offered?.holdFull);
    const lowered = permit.clamped ? `, with lowered limits (${permit.clamped})` : "";
    const all = permit.growth ? ", more as the stream goes on" : ", the whole worst case";
    const worstCase = permit.heldWorstCase
      ? ", the highest possible because the account's recent charges exceeded its holds"
      : "";
    return `${payer} pays: ${formatUsd(permit.hold)} USD held${whole ? all : ""}${worstCase}${lowered}.`;
  },
  limits({ seen: { limits }, permit, group }) {
    const { requests, tokens } = permit?.limits ?? {};
    const left = [
      ...(requests ? [`${requests.remaining} of ${requests.limit} requests`] : []),
      ...(tokens ? [`${tokens.remaining} of ${tokens.limit} tokens`] : []),
    ];
    const rates = left.length === 0 ? "No rate is limited" : `In this minute, ${left.join(" and ")} would be left`;
    return `${rates}; ${limits?.inFlight ?? 0} of ${group?.limits.concurrency ?? 0} requests run now.`;
  },
  routes({ routes }) {
    const able = routes.filter(({ carried }) => !isRefusal(carried)).length;
    return `${able} of ${routes.length} routes can carry the request.`;
  },
};

function priceOf({ terms, offered, group }: Forecast): ExplanationAnswer["price"] {
  if (!terms || !offered || !group) return null;
  const { price } = terms.model;
  return {
    input_tokens_max: offered.heldTokens,
    output_tokens_max: (terms.outputLimit + besideLimit(terms)) * terms.choices,
    worst_usd: formatUsd(offered.holdFull),
    least_usd: formatUsd(offered.holdMin),
    multiplier: formatUsd(group.multiplier * 1_000n),
    input_usd_per_million: formatUsd(price.input),
    output_usd_per_million: formatUsd(price.output),
  };
}

function limitsOf({ group, terms, seen: { limits } }: Forecast): ExplanationAnswer["limits"] {
  if (!group) return null;
  const state = (bucket: Bucket | undefined, limit: number | undefined) => {
    if (!limits || limit === undefined) return null;
    const { remaining, resetMs } = bucketState(drain(bucket, limit, limits.storeTimeMs), limit, limits.storeTimeMs);
    return { remaining, reset_seconds: Math.ceil(resetMs / MS_PER_S) };
  };
  const { requestsPerMinute, tokensPerMinute, concurrency, perKey } = group.limits;
  return {
    checked: limits !== undefined,
    counted_per: perKey ? "key" : "account",
    requests_per_minute: requestsPerMinute ?? null,
    tokens_per_minute: tokensPerMinute ?? null,
    concurrency,
    requests: state(limits?.requests, requestsPerMinute),
    tokens: state(limits?.tokens, tokensPerMinute),
    in_flight: limits?.inFlight ?? null,
    tokens_of_this_request: terms?.inputTokens ?? null,
  };
}

function routeOf(
  { route, actions, carried }: Omit<RouteForecast, "health">,
  audience: "owner" | "operator",
): OwnersRouteAnswer {
  const refused = isRefusal(carried);
  return {
    protocol: route.protocol,
    carries: !refused,
    translation: refused ? null : (carried.translation ?? "none needed"),
    dropped: refused ? [] : carried.dropped,
    refusal: refused ? { cause: carried.cause, param: carried.facts.param ?? null, words: detailOf(carried) } : null,
    rules: actions.map((action) => ruleOf(action, audience)),
  };
}

/** A rule as it may be shown: without values of headers; the operator's texts only to the operator. */
function ruleOf(action: RuleAction, audience: "owner" | "operator"): object {
  const operator = audience === "operator";
  switch (action.kind) {
    case "drop":
      return { kind: action.kind, members: action.paths.map((path) => path.join(".")) };
    case "set":
    case "default":
      return {
        kind: action.kind,
        members: action.members.map(({ path, json }) => (operator ? `${path.join(".")}=${json}` : path.join("."))),
      };
    case "system":
      return { kind: action.kind, at: action.at, ...(operator ? { text: action.text } : {}) };
    case "header": {
      const { remove, add } = action.edits;
      return { kind: action.kind, ...(operator ? { remove, add: add.map(({ name }) => name) } : {}) };
    }
    case "strip_attribution":
      return { kind: action.kind };
  }
}
