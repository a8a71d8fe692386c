/**
 * `explain`: what would happen to a request, and why. It uses the pipeline's own functions (`readEnvelope`, `admit`,
 * `encoderFor`), but with a store that only reads: no upstream is asked, nothing is held or charged, and no limit is
 * used. `explanation.ts` puts the outcome into words; `questions.ts` reads the questions.
 */
import type { ReadBody } from "../../accept/envelope.ts";
import { type AdmitParts, admit } from "../../admit/admit.ts";
import type { Permit } from "../../admit/permit.ts";
import { NO_SEEN_KEYS } from "../../admit/seen-keys.ts";
import { measure, type OfferedTerms, type Terms } from "../../admit/terms.ts";
import { openExchange } from "../../convert/bridge.ts";
import { contextOf } from "../../request/context.ts";
import { encoderFor } from "../../request/conversion.ts";
import type { PipelineParts } from "../../request/run.ts";
import type { AdmitAsk, AdmitRefused, Admitted } from "../../store/admission.ts";
import type { LimitUsage } from "../../store/buckets.ts";
import { decide, runningCards } from "../../store/decision.ts";
import type { ExtendAnswer } from "../../store/extension.ts";
import { keyScope } from "../../store/names.ts";
import type { KeyView } from "../../store/records.ts";
import { type Catalog, type Group, groupServes, type Model, type Route } from "../../values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "../../values/errors.ts";
import type { KeyHash } from "../../values/key.ts";
import type { Envelope } from "../../values/members/envelope.ts";
import { leastNano, type NanoUsd, nanoUsd } from "../../values/money.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { RequestId } from "../../values/request-id.ts";
import { actionsFor, type RuleAction } from "../../values/rules.ts";
import { nearest } from "../../values/words/nearest.ts";

export type ExplainParts = Pick<PipelineParts, "settings" | "clock" | "sealing" | "journal"> & {
  readonly dispatcher: Pick<PipelineParts["dispatcher"], "report">;
  readonly admit: Pick<AdmitParts, "catalog" | "wallMs" | "unsettled">;
};

/** What was read of a key and its account. */
export interface SeenAccount {
  readonly view: KeyView;
  /** What running requests hold of the account's balance. */
  readonly held: NanoUsd;
  /** The limits of the key's scope; undefined if they were not read: then they count as not reached. */
  readonly limits?: LimitUsage | undefined;
  /** The same for the key's own rate limits, if it has any. */
  readonly limitsOfKey?: LimitUsage | undefined;
}

/** A request to explain; it is not sent. */
export interface ExplainQuestion {
  readonly protocol: Protocol;
  readonly read: ReadBody | Refusal;
  /** Whether a translation that drops something is a refusal (`x-tollgate-strict: 1`). */
  readonly strict: boolean;
}

/** What one route would do with the request. */
export interface RouteForecast {
  readonly route: Route;
  /** The operator's rules for this route, in the order of their application. */
  readonly actions: readonly RuleAction[];
  /** The health of its upstream in this process; undefined if the process has no upstream of that name. */
  readonly health: "healthy" | "probe" | "ejected" | undefined;
  /**
   * `exact`, `lossy; dropped=...`, undefined if client and upstream speak the same protocol; or why it cannot carry the
   * request.
   */
  readonly carried: { readonly translation: string | undefined; readonly dropped: readonly string[] } | Refusal;
}

/** Everything that was found out, up to the first refusal and, if known, beyond it. */
export interface Forecast {
  readonly question: ExplainQuestion;
  readonly seen: SeenAccount;
  /** The refusal that the request would get; undefined if it would go upstream. */
  readonly refused: Refusal | undefined;
  /** Whether the request is refused because of what it asks for (`measure`), not by its routes. */
  readonly unpriced: boolean;
  readonly permit: Permit | undefined;
  readonly model: Model | undefined;
  /** For an unknown model name: the most similar name that the key's group serves. */
  readonly meant: string | undefined;
  readonly group: Group | undefined;
  readonly terms: Terms | undefined;
  /** The terms of the key's group; undefined if it does not serve the model. */
  readonly offered: OfferedTerms | undefined;
  readonly routes: readonly RouteForecast[];
}

/** Maximum of routes that one explanation encodes for; further routes are ignored. */
const ROUTES_MAX = 16;

/** Finds out what would happen to a request. Changes nothing. */
export async function explain(question: ExplainQuestion, seen: SeenAccount, parts: ExplainParts): Promise<Forecast> {
  const catalog = parts.admit.catalog();
  const { read } = question;
  const envelope = isRefusal(read) ? undefined : read.envelope;
  const model = envelope && catalog.models.get(envelope.model);
  const quote = envelope && model && measure(envelope, model, catalog);
  const unpriced = isRefusal(quote);
  const { terms, groups = [] } = quote && !isRefusal(quote) ? quote : {};
  const group = catalog.groups.get(seen.view.key.group);
  const permit = await permitFor(question, seen, catalog, parts);
  const granted = isRefusal(permit) ? undefined : permit;
  const routes =
    isRefusal(read) || !terms ? [] : routeForecasts(question, read, { seen, terms, group, granted }, parts);
  return {
    question,
    seen,
    refused: isRefusal(permit) ? permit : noRoute(routes, permit),
    unpriced,
    permit: granted,
    model,
    meant: envelope && !model ? meantBy(envelope.model, group, catalog) : undefined,
    group,
    terms,
    offered: groups.find((one) => one.group === group?.name),
    routes,
  };
}

/** Maximum edit distance of a suggested name. */
const EDITS_MAX = 2;

function meantBy(name: string, group: Group | undefined, catalog: Catalog): string | undefined {
  const served = [...catalog.models.keys()].filter((one) => group && groupServes(group, one));
  return nearest(name, served, Math.min(EDITS_MAX, name.length - 1));
}

/** Admission as in the pipeline, with a store that only reads. */
async function permitFor(
  { protocol, read }: ExplainQuestion,
  seen: SeenAccount,
  catalog: Catalog,
  { admit: { wallMs }, journal }: ExplainParts,
): Promise<Permit | Refusal> {
  if (!journal.health().usable) return refusal("journal_full");
  const facts: Envelope | Refusal = isRefusal(read) ? read : read.envelope;
  const key = { tag: seen.view.key.tag, hash: "" as KeyHash };
  let foreseen: Admitted | AdmitRefused | undefined;
  return admit(
    { requestId: "" as RequestId, protocol, key, facts, address: "", holdTtlMs: 0, idempotency: undefined },
    {
      store: {
        async admit(ask) {
          foreseen = foresee(seen, ask);
          return foreseen;
        },
        extend: async ({ target }) => foreseenHold(foreseen, target),
        readKey: async () => seen.view,
      },
      catalog: () => catalog,
      wallMs,
      unsettled: () => undefined,
      abandon: () => {},
      seenKeys: NO_SEEN_KEYS,
    },
  );
}

/** The answer that `Store.extend` would give right after this admission. */
function foreseenHold(admitted: Admitted | AdmitRefused | undefined, target: NanoUsd): ExtendAnswer {
  if (admitted?.outcome !== "admitted") return { outcome: "gone" };
  return { outcome: "held", hold: leastNano(target, nanoUsd(admitted.hold + (admitted.free ?? 0n))) };
}

/** The answer that `Store.admit` would give. */
export function foresee(
  { view: { key, account, entitlements, budgets, storeTimeMs }, held, limits, limitsOfKey }: SeenAccount,
  ask: Pick<AdmitAsk, "plans" | "groups" | "inputTokens" | "model">,
): Admitted | AdmitRefused {
  const nowMs = Math.max(storeTimeMs, limits?.storeTimeMs ?? 0);
  const facts = {
    key,
    plan: account.plan,
    running: runningCards(entitlements, nowMs),
    free: nanoUsd(account.balance - held),
    overrun: limits?.overrun,
    accountLimits: account.limits,
    budget: (field: string) => budgets.get(field),
    limits: (scope: string) => (scope === keyScope(key.id) ? limitsOfKey : limits),
    inFlightOfKey: limitsOfKey?.inFlight ?? 0,
    nowMs,
  };
  const { answer } = decide({ ...ask, address: undefined, again: false }, facts);
  if (answer.outcome === "refused") return answer;
  const { scope: _scope, budgets: _budgets, worstCase, free, ...granted } = answer;
  return {
    ...granted,
    outcome: "admitted",
    accountId: account.id,
    keyId: key.id,
    group: key.group,
    ...(worstCase ? { worstCase } : {}),
    ...(free === undefined ? {} : { free }),
    storeTimeMs: nowMs,
  };
}

interface Decided {
  readonly seen: SeenAccount;
  readonly terms: Terms;
  readonly group: Group | undefined;
  readonly granted: Permit | undefined;
}

/**
 * What each route of the model would do with the body, best priority first; empty if the group does not serve the
 * model.
 */
function routeForecasts(
  question: ExplainQuestion,
  read: ReadBody,
  { seen, terms, group, granted }: Decided,
  parts: ExplainParts,
): RouteForecast[] {
  const { model } = terms;
  if (!group || !groupServes(group, model.name)) return [];
  // As in admission: a whole reply without a limit from the client gets the default.
  const { limit, stream } = read.envelope;
  const asAsked = limit === undefined && !stream ? terms.outputLimit : undefined;
  const outputLimit = granted ? granted.outputLimit : asAsked;
  const request = { protocol: question.protocol, model: model.name, stream: read.envelope.stream, ...read };
  const permitted = {
    outputLimit,
    thinkingMost: granted?.thinkingMost,
    openEnded: granted?.openEnded,
    unpricedTools: terms.unpricedTools,
    strict: question.strict,
  };
  const encode = encoderFor(openExchange, request, { model, group }, permitted, contextOf(parts, seen.view.key));
  const healthOf = new Map(parts.dispatcher.report().map(({ name, health }) => [name, health]));
  return [...model.routes]
    .sort((a, b) => a.priority - b.priority)
    .slice(0, ROUTES_MAX)
    .map((route) => {
      const encoded = encode(route);
      const actions = actionsFor([group, model, route], route.protocol);
      const health = healthOf.get(route.upstream);
      if (isRefusal(encoded)) return { route, actions, health, carried: encoded };
      const { request: sent, translation } = encoded.token.exchange;
      return { route, actions, health, carried: { translation, dropped: sent.dropped } };
    });
}

/** The refusal if no route can carry the request: the first route's, as in dispatch. */
function noRoute(routes: readonly RouteForecast[], { model, group }: Permit): Refusal | undefined {
  const refusals = routes.map(({ carried }) => carried).filter(isRefusal);
  if (routes.length > refusals.length) return undefined;
  const refused = refusals[0] ?? refusal("upstream_unavailable");
  return { ...refused, facts: { model: model.name, group: group.name, ...refused.facts } };
}
