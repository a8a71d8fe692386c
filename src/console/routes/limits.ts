/**
 * Limits of keys and accounts: those that a key's owner sets, the operator's caps on them, and an account's budgets.
 */

import { LIMITS_CHARS_MAX } from "../../store/checks.ts";
import { type BlockFault, blockFault } from "../../store/limits/address-bits.ts";
import {
  allowsModel,
  BUDGET_SPANS,
  type BudgetSpan,
  type LimitSet,
  limitsText,
  readLimitsText,
} from "../../store/limits/limits.ts";
import type { ListedKey } from "../../store/records.ts";
import { type Catalog, groupServes } from "../../values/catalog.ts";
import { formatUsd, type NanoUsd, parseUsd } from "../../values/money.ts";
import { ceilingOf, holdFor } from "../../values/price.ts";
import { COMMAND } from "../../values/program/program.ts";
import { AccountShape, KeyShape } from "../answers/answers.ts";
import { showAccount, showKey } from "../answers/present.ts";
import { accountNamed } from "../named-accounts.ts";
import { keyNamed, ownerOf } from "../named-keys.ts";
import { AdminRefusal, accountClosed, keyRevoked, malformed, noSuchAccount, noSuchKey } from "../refusal.ts";
import { guessOf } from "../suggest.ts";
import { AccountPath, closed, KeyPath, type Static, type TSchema, Type, Usd } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** Maximum number of models and of addresses in a key's limits. */
const LISTED_MAX = 64;

const noneOr = <S extends TSchema>(shape: S) => Type.Optional(Type.Union([shape, Type.Null()]));

function perMinute(what: string) {
  return Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    description: `a whole number from 1 to 1000000000: ${what}`,
    "x-remedy": "Leave it out, or send null, for no limit.",
    examples: [60],
  });
}

const NewKeyLimits = Type.Object(
  {
    budgets_usd: noneOr(
      Type.Object({ day: noneOr(Usd), week: noneOr(Usd), month: noneOr(Usd), total: noneOr(Usd) }, closed),
    ),
    requests_per_minute: noneOr(perMinute("requests per minute")),
    tokens_per_minute: noneOr(perMinute("tokens per minute")),
    concurrency: noneOr(perMinute("requests at once")),
    models: noneOr(
      Type.Array(
        Type.String({
          pattern: "^(?:[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}|(?:[A-Za-z0-9][A-Za-z0-9._:/-]{0,126})?\\*)$",
          description: "a model name, or a prefix of model names with one * at the end",
          "x-remedy": "Copy the name from the catalog.",
          examples: ["small-*"],
        }),
        {
          minItems: 1,
          maxItems: LISTED_MAX,
          description: `a list of 1 to ${LISTED_MAX} models`,
          "x-remedy": "Leave it out, or send null, for all models of the group.",
        },
      ),
    ),
    addresses: noneOr(
      Type.Array(
        Type.String({
          maxLength: 64,
          description: "an address, or a CIDR block, as a string such as 192.0.2.0/24",
          "x-remedy": "Send the network and its prefix length.",
          examples: ["192.0.2.0/24"],
        }),
        {
          minItems: 1,
          maxItems: LISTED_MAX,
          description: `a list of 1 to ${LISTED_MAX} addresses or CIDR blocks`,
          "x-remedy": "Leave it out, or send null, for any address.",
        },
      ),
    ),
  },
  closed,
);

const NewAccountLimits = Type.Object(
  { budgets_usd: noneOr(Type.Object({ day: noneOr(Usd), month: noneOr(Usd) }, closed)) },
  closed,
);

const REPEAT = "Repeat the request: setting the same limits again changes nothing.";
const REPLACES = "These limits replace all earlier ones. What is left out or null is unlimited.";

export function limitRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store, catalog } = parts;
  return [
    keyRoute(parts, "limits"),
    keyRoute(parts, "caps"),
    route({
      method: "PUT",
      path: "/accounts/:name/limits",
      id: "setAccountLimits",
      summary: "Limit what all keys of an account spend per day and per month, effective from the next request",
      description: REPLACES,
      answers: { 200: AccountShape },
      refusals: { 400: BUDGET_REFUSALS, 404: "`unknown_account`.", 409: "`account_closed`." },
      params: AccountPath,
      body: NewAccountLimits,
      write: {
        what: "account.set_limits",
        target: ({ params }) => params.name,
        facts: ({ body }) => factsOf(body),
        whenUnknown: REPEAT,
      },
      async handle({ params, body }) {
        const limits = { budgets: readBudgets(body.budgets_usd) };
        const every = [...catalog().groups.keys()];
        assertUseful(limits, leastCost(catalog(), every, limits), "account");
        const account = await accountNamed(store, params.name);
        if (account.status === "closed") throw accountClosed(params.name);
        const after = await store.setAccountLimits(account.tag, limitsText(limits));
        if (after === undefined) throw noSuchAccount(params.name);
        return { status: 200, body: showAccount(after), repeated: after.limits === account.limits };
      },
    }),
  ];
}

const BUDGET_REFUSALS =
  "`limits_contradict`: a longer budget is below a shorter one. " +
  "`budget_too_small`: it is below the cost of the smallest request.";
const KEY_REFUSALS =
  "`limits_contradict`: a longer budget is below a shorter one, or the key's group serves none of the models. " +
  "`unknown_model`: the configuration has no model of that name. " +
  "`budget_too_small`: it is below the cost of the smallest request.";

function keyRoute({ store, catalog }: ConsoleParts, which: "limits" | "caps"): ConsoleRoute {
  const isCap = which === "caps";
  return route({
    method: "PUT",
    path: `/keys/:id/${which}`,
    id: isCap ? "setKeyCaps" : "setKeyLimits",
    summary: isCap
      ? "Cap the limits of a key; the owner can only set stricter ones"
      : "Set the limits of a key, effective from its next request",
    description: `${REPLACES} The stricter of a limit and its cap applies.`,
    answers: { 200: KeyShape },
    refusals: {
      400: KEY_REFUSALS,
      404: "`unknown_key`.",
      409: `\`key_revoked\`: a revoked key cannot be changed.${isCap ? "" : " `above_cap`: it exceeds the operator's cap."}`,
    },
    params: KeyPath,
    body: NewKeyLimits,
    write: {
      what: isCap ? "key.set_caps" : "key.set_limits",
      target: ({ params }) => params.id,
      facts: ({ body }) => factsOf(body),
      whenUnknown: REPEAT,
    },
    async handle({ params, body }) {
      const limits = readKeyLimits(body);
      const account = await ownerOf(store, params.id);
      const key = await keyNamed(store, account.tag, params.id);
      const before = readLimitsText(key[which]);
      const added = (limits.models ?? []).filter((name) => !before.models?.includes(name));
      assertModelsKnown(added, limits, catalog(), key.group);
      assertUseful(limits, leastCost(catalog(), [key.group], limits, added), "key");
      if (!isCap) assertWithin(limits, key);
      const changed = await store.changeKey(account.tag, params.id, { [which]: limitsText(limits) });
      if (changed === undefined) throw noSuchKey(params.id);
      if (changed.status === "revoked") throw keyRevoked(changed);
      return { status: 200, body: showKey(changed, account.name) };
    },
  });
}

/** The facts of an audit line: the figures, and the numbers of models and addresses. */
function factsOf(
  body: Static<typeof NewKeyLimits> | Static<typeof NewAccountLimits>,
): Readonly<Record<string, string>> {
  const { budgets_usd: budgets = {}, ...rest } = body;
  const said = [...Object.entries(budgets ?? {}), ...Object.entries(rest)].filter(([, value]) => value !== null);
  return Object.fromEntries(
    said.map(([name, value]) => [name, Array.isArray(value) ? `${value.length} named` : `${value}`]),
  );
}

type TypedBudgets = Partial<Readonly<Record<BudgetSpan, string | null>>>;

/** @throws AdminRefusal 400 for a budget that is not an amount above 0, or is below that of a shorter period */
function readBudgets(typed: TypedBudgets | null | undefined): NonNullable<LimitSet["budgets"]> {
  const budgets: Partial<Record<BudgetSpan, NanoUsd>> = {};
  let shorter: BudgetSpan | undefined;
  for (const span of BUDGET_SPANS) {
    const text = typed?.[span];
    if (text === undefined || text === null) continue;
    const amount = parseUsd(text);
    if (amount === undefined || amount === 0n) {
      throw malformed(
        `budgets_usd.${span}`,
        "an amount of US dollars above 0",
        'Write it like "10.00"; leave it out, or send null, for no budget.',
      );
    }
    if (shorter !== undefined && amount < (budgets[shorter] as bigint)) {
      throw contradict(
        `The budget ${span === "total" ? "in total" : `per ${span}`} is below the budget per ${shorter}, which could then never be used up.`,
        `Lower the budget per ${shorter} to ${formatUsd(amount)}, or leave it out.`,
      );
    }
    budgets[span] = amount;
    shorter = span;
  }
  return budgets;
}

const BLOCK_RULE = "an address or a CIDR block such as 192.0.2.0/24 or 2001:db8::/32";

/** By fault. The address is not repeated, because anything may have been pasted in its place. */
const BLOCK_REMEDIES: Readonly<Record<BlockFault, string>> = {
  address:
    "The part before the slash is not an IP address: write IPv4 as four numbers from 0 to 255 with dots, and IPv6 as groups of at most four hexadecimal digits with colons.",
  prefix: "The part after the slash is not a prefix length: use a whole number, at most 32 for IPv4 and 128 for IPv6.",
  bits: "It has bits set after its prefix: send the network itself, such as 192.0.2.0/24 for 192.0.2.7/24.",
};

/** @throws AdminRefusal 400 */
function readKeyLimits(body: Static<typeof NewKeyLimits>): LimitSet {
  const { budgets_usd, requests_per_minute: rpm, tokens_per_minute: tpm, concurrency, models, addresses } = body;
  for (const [i, block] of (addresses ?? []).entries()) {
    const fault = blockFault(block);
    if (fault !== undefined) throw malformed(`addresses[${i}]`, BLOCK_RULE, BLOCK_REMEDIES[fault]);
  }
  const limits: LimitSet = {
    budgets: readBudgets(budgets_usd),
    ...(typeof rpm === "number" && { requestsPerMinute: rpm }),
    ...(typeof tpm === "number" && { tokensPerMinute: tpm }),
    ...(typeof concurrency === "number" && { concurrency }),
    ...(models && { models }),
    ...(addresses && { addresses }),
  };
  if (limitsText(limits).length > LIMITS_CHARS_MAX) {
    throw malformed(
      "limits",
      `at most ${LIMITS_CHARS_MAX} characters in stored form`,
      "Send fewer models, name prefixes with a *, or larger blocks of addresses.",
    );
  }
  return limits;
}

const COPY_NAMES =
  "Copy names exactly from the catalog (GET /v1/models with the key); a name may end with * for any ending.";

/**
 * @param added names that were not in the limits before. An old name that the configuration no longer has stays,
 *   because the caller did not add it.
 * @throws AdminRefusal 400 for the first name that matches no model of the configuration, with the nearest one that the
 *   group serves
 */
function assertModelsKnown(added: readonly string[], { models }: LimitSet, catalog: Catalog, groupName: string): void {
  const known = [...catalog.models.keys()];
  const unknown = added.find((name) => !known.some((model) => allowsModel({ models: [name] }, model)));
  if (unknown === undefined) return;
  const group = catalog.groups.get(groupName);
  const served = known.filter((model) => group && groupServes(group, model));
  throw new AdminRefusal(
    400,
    "unknown_model",
    `\`models[${models?.indexOf(unknown)}]\` is \`${unknown}\`, which is not a model of the configuration.`,
    `${guessOf(unknown, served)}${COPY_NAMES}`,
  );
}

/** The shortest request: one token of input, and the least useful output that admission accepts. */
const LEAST_REQUEST = { inputTokens: 1, outputTokens: 16 };

/**
 * The cost of the cheapest request that a key could make.
 * @param added models that the limits name for the first time
 * @throws AdminRefusal 400 if the limits leave no model of the groups, unless they did so before
 */
function leastCost(
  catalog: Catalog,
  groups: readonly string[],
  limits: LimitSet,
  added: readonly string[] = [],
): bigint {
  const costs = groups.flatMap((name) => {
    const group = catalog.groups.get(name);
    if (!group) return [];
    return [...catalog.models.values()]
      .filter((model) => groupServes(group, model.name) && allowsModel(limits, model.name))
      .map(({ price }) =>
        holdFor(ceilingOf(price, group.multiplier, LEAST_REQUEST.inputTokens), LEAST_REQUEST.outputTokens),
      );
  });
  if (costs.length === 0 && added.length > 0) {
    throw contradict("The limits name no model that the key's group serves.", COPY_NAMES);
  }
  return costs.reduce((least, cost) => (cost < least ? cost : least), costs[0] ?? 0n);
}

const FIGURE_OPTIONS: Readonly<Record<string, string>> = {
  requests_per_minute: "--requests COUNT",
  tokens_per_minute: "--tokens COUNT",
  concurrency: "--concurrency COUNT",
};

/** The option of `key limit` for a figure of the body, with a word in place of its value. */
function optionOf(figure: string): string {
  return FIGURE_OPTIONS[figure] ?? `--${figure.slice(figure.indexOf(".") + 1)} USD`;
}

/** @throws AdminRefusal 400 for a budget that is below the cost of any request */
function assertUseful({ budgets = {} }: LimitSet, least: bigint, limited: "key" | "account"): void {
  for (const span of BUDGET_SPANS) {
    const budget = budgets[span];
    if (budget === undefined || budget >= least) continue;
    throw new AdminRefusal(
      400,
      "budget_too_small",
      `\`budgets_usd.${span}\` is below ${formatUsd(least)} USD, the cost of the smallest request.`,
      `Raise it; to block the ${limited} completely, suspend it.`,
    );
  }
}

/**
 * An old figure above its cap stays, because the cap applies anyway and the caller did not change it.
 * @param key as it is before the change
 * @throws AdminRefusal 409 for a figure above the operator's cap; `owner/for-owners.ts` has an owner's remedy
 */
function assertWithin(limits: LimitSet, key: ListedKey): void {
  const figures = ({ budgets = {}, requestsPerMinute, tokensPerMinute, concurrency }: LimitSet) => ({
    ...Object.fromEntries(BUDGET_SPANS.map((span) => [`budgets_usd.${span}`, budgets[span]])),
    requests_per_minute: requestsPerMinute,
    tokens_per_minute: tokensPerMinute,
    concurrency,
  });
  const most: Readonly<Record<string, bigint | number | undefined>> = figures(readLimitsText(key.caps));
  const known: Readonly<Record<string, bigint | number | undefined>> = figures(readLimitsText(key.limits));
  for (const [name, figure] of Object.entries(figures(limits))) {
    const cap = most[name];
    if (figure === undefined || cap === undefined || figure <= cap || figure === known[name]) continue;
    const words = typeof cap === "bigint" ? `${formatUsd(cap)} USD` : `${cap}`;
    throw new AdminRefusal(
      409,
      "above_cap",
      `\`${name}\` is above the operator's cap of ${words}.`,
      `Lower it to the cap, or raise the cap first: ${COMMAND} key limit ${key.id} --cap ${optionOf(name)}`,
    );
  }
}

function contradict(message: string, remedy: string): AdminRefusal {
  return new AdminRefusal(400, "limits_contradict", message, remedy);
}
