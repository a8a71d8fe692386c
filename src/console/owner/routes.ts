/** The routes of owners: those of the admin API that concern one account, and those that only pages need. */
import type { Clock } from "../../values/time.ts";
import { type SessionAnswer, SessionShape } from "../answers/session.ts";
import { GuessBudget } from "../guess-budget.ts";
import { AdminRefusal } from "../refusal.ts";
import { accountRoutes } from "../routes/accounts.ts";
import { cardRoutes } from "../routes/cards.ts";
import { codeRoutes } from "../routes/codes.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import { keyRoutes } from "../routes/keys.ts";
import { limitRoutes } from "../routes/limits.ts";
import type { Challenges } from "../sign-in/challenges.ts";
import { accessRoutes, ENDS_ACCESS } from "./access.ts";
import type { OwnerParts } from "./contract.ts";
import { forOwners } from "./for-owners.ts";
import { type OwnExplain, ownHelpRoutes } from "./help.ts";
import { keyGroupsRoute } from "./key-groups.ts";
import { ownLineRoutes } from "./lines.ts";
import { ownModelRoutes } from "./models.ts";
import { overviewRoute } from "./overview.ts";
import type { OwnScope } from "./own-store.ts";
import { keySpendRoute } from "./spend.ts";
import { ownUsageRoutes } from "./usage.ts";

/** What the routes of owners are made with. */
interface OwnerRouteParts extends OwnerParts {
  readonly challenges: Challenges;
  readonly explain?: OwnExplain | undefined;
}

/** Routes of the admin API that owners have, by id. Ids and names lead to the owner's own data or to 404. */
const OF_ADMIN: ReadonlySet<string> = new Set([
  "showAccount",
  "listCards",
  "redeemCode",
  "createKey",
  "listKeys",
  "showKey",
  "setKeyGroup",
  "renameKey",
  "setKeyExpiry",
  "suspendKey",
  "resumeKey",
  "rotateKey",
  "revokeKey",
  "setKeyLimits",
]);

/** @param parts with the store of the signed-in owner */
export function ownerRoutes(parts: OwnerRouteParts, scope: OwnScope): readonly ConsoleRoute[] {
  const ofAdmin = [accountRoutes, cardRoutes, codeRoutes, keyRoutes, limitRoutes].flatMap((make) => make(parts));
  const all = [
    ...ofAdmin.filter(({ id }) => OF_ADMIN.has(id)),
    sessionRoute(parts, scope),
    ...accessRoutes(parts, scope),
    overviewRoute(parts, scope),
    keyGroupsRoute(parts, scope),
    keySpendRoute(parts, scope),
    ...ownUsageRoutes(parts, scope),
    ...ownLineRoutes(parts, scope),
    ...ownModelRoutes(parts, scope),
    ...ownHelpRoutes(parts, scope),
  ];
  const bounded = all.map((one) => (one.id === "createKey" ? bounding(one, parts.clock, scope) : one));
  return bounded.map(forOwners).map((one) => (one.write && !ENDS_ACCESS.has(one.id) ? forNormal(one, scope) : one));
}

/**
 * Limits of keys that an owner creates. Each key is kept forever, even when revoked, and every list reads all of them.
 */
const KEYS_MADE = Object.freeze({ failuresPerMinute: 30, failuresPerDay: 300, namesMax: 10_000 });

function bounding(one: ConsoleRoute, clock: Clock, scope: OwnScope): ConsoleRoute {
  const budget = new GuessBudget(clock, KEYS_MADE);
  return {
    ...one,
    async handle(input) {
      const wait = Math.ceil(budget.waitMs(scope.tag) / 1_000);
      if (wait > 0) throw tooManyKeys(wait);
      // Counted before the key is created, so that concurrent requests are counted too.
      budget.failed(scope.tag);
      return one.handle(input);
    },
  };
}

function tooManyKeys(wait: number): AdminRefusal {
  return new AdminRefusal(
    429,
    "too_many_keys_made",
    "This account has reached the limit of new keys for now.",
    `Wait ${wait} s, or ask your operator for more keys.`,
    { "retry-after": String(wait) },
  );
}

/** A write only for accounts that are neither suspended nor closed; owners of the others may only read. */
function forNormal(one: ConsoleRoute, scope: OwnScope): ConsoleRoute {
  return {
    ...one,
    async handle(input) {
      const { status } = scope.owner.account;
      if (status !== "normal") throw mayOnlyLook(status);
      return one.handle(input);
    },
  };
}

function mayOnlyLook(status: "suspended" | "closed"): AdminRefusal {
  const [until, remedy] =
    status === "suspended"
      ? ["Until your operator resumes it, you can see everything but change nothing", "Ask your operator why."]
      : ["You can see everything but change nothing", "Ask your operator for another account."];
  return new AdminRefusal(403, `account_${status}`, `Your account is ${status}. ${until}.`, remedy);
}

function sessionRoute({ catalog, settings: { support } }: OwnerParts, scope: OwnScope): ConsoleRoute {
  return route({
    method: "GET",
    path: "/session",
    id: "showSession",
    summary: "Show who is signed in, by which method, and until when",
    answers: { 200: SessionShape },
    async handle() {
      const { account, session } = scope.owner;
      const body: SessionAnswer = {
        account: account.name,
        status: account.status,
        way: session.way,
        ends_at: new Date(session.endsAtMs).toISOString(),
        groups: [...catalog().groups.keys()],
        support: { email: support.email ?? null, url: support.url ?? null },
      };
      return { status: 200, body };
    },
  });
}
