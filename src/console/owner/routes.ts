/** What owners may ask: the admin's routes that concern one account, and what only a page needs. */
import type { ConsoleSettings } from "../../values/settings.ts";
import { type SessionAnswer, SessionShape } from "../answers/session.ts";
import { accountRoutes } from "../routes/accounts.ts";
import { cardRoutes } from "../routes/cards.ts";
import { codeRoutes } from "../routes/codes.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "../routes/contract.ts";
import { keyRoutes } from "../routes/keys.ts";
import { limitRoutes } from "../routes/limits.ts";
import { type OwnExplain, ownHelpRoutes } from "./help.ts";
import { ownLineRoutes } from "./lines.ts";
import { ownModelRoutes } from "./models.ts";
import type { OwnScope } from "./own-store.ts";
import { ownUsageRoutes } from "./usage.ts";

interface OwnerParts extends ConsoleParts {
  readonly settings: ConsoleSettings;
  readonly explain?: OwnExplain | undefined;
}

/** Routes of the admin API that owners have, by their ids. What an id or a name leads to is their own, or not there. */
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

/** @param parts with the store of the one who asks. */
export function ownerRoutes(parts: OwnerParts, scope: OwnScope): readonly ConsoleRoute[] {
  const ofAdmin = [accountRoutes, cardRoutes, codeRoutes, keyRoutes, limitRoutes].flatMap((make) => make(parts));
  return [
    ...ofAdmin.filter(({ id }) => OF_ADMIN.has(id)),
    sessionRoute(parts, scope),
    ...ownUsageRoutes(parts, scope),
    ...ownLineRoutes(parts, scope),
    ...ownModelRoutes(parts, scope),
    ...ownHelpRoutes(parts, scope),
  ];
}

function sessionRoute({ catalog, settings: { support } }: OwnerParts, scope: OwnScope): ConsoleRoute {
  return route({
    method: "GET",
    path: "/session",
    id: "showSession",
    summary: "Who has signed in, how, and until when",
    answers: { 200: SessionShape },
    async handle() {
      const { account, session } = scope.owner;
      const body: SessionAnswer = {
        account: account.name,
        way: session.way,
        ends_at: new Date(session.endsAtMs).toISOString(),
        groups: [...catalog().groups.keys()],
        support: { email: support.email ?? null, url: support.url ?? null },
      };
      return { status: 200, body };
    },
  });
}
