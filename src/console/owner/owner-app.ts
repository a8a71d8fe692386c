/**
 * The application of the owners' console: the admin API's routes restricted to the signed-in account, the sign-in
 * methods, and the pages.
 */
import { setImmediate } from "node:timers/promises";
import cookies from "@fastify/cookie";
import type { Store } from "../../store/contract.ts";
import type { AccountTag } from "../../values/key.ts";
import type { ConsoleSettings } from "../../values/settings.ts";
import { type App, type AppRequest, addRoute, createApp } from "../app.ts";
import { addPages } from "../page-routes.ts";
import { AdminRefusal } from "../refusal.ts";
import type { ConsoleAnswer } from "../routes/contract.ts";
import { Attempts, SessionRates } from "../sign-in/attempts.ts";
import { Challenges } from "../sign-in/challenges.ts";
import { assertSameOrigin } from "../sign-in/same-origin.ts";
import { Sessions } from "../sign-in/sessions.ts";
import { siteOf } from "../sign-in/site.ts";
import type { OwnerConsoleOptions } from "./contract.ts";
import { addOidcSignIn } from "./oidc-sign-in.ts";
import { OwnScope, ownStore, type SignedIn } from "./own-store.ts";
import { ReadTurns } from "./read-turns.ts";
import { ownerRoutes } from "./routes.ts";
import { addSignIn, namedByFront } from "./sign-in.ts";

const COOKIE_NAME = "__Host-tollgate-owner";

/** @param options those of `createOwnerConsole` */
export function ownerApp(options: OwnerConsoleOptions): App {
  const { settings, store, clock, random, sealer, audit } = options;
  const { path, publicUrl, sessionMs } = settings;
  const api = `${path}/api`;
  const nowhere = `${api}/*`;
  const sessions = new Sessions({ store, clock, random, sealer, lastsMs: sessionMs, cookieName: COOKIE_NAME });
  const challenges = new Challenges({ store, clock, random, sealer });
  const parts = { store, settings, sessions, rates: new SessionRates(clock) };
  const scope = new OwnScope();
  const turns = new ReadTurns();
  const owners = new WeakMap<AppRequest, SignedIn>();
  const ownerOf = (request: AppRequest) => owners.get(request) as SignedIn;
  const askerOf = (request: AppRequest) => ({
    who: whoOf(ownerOf(request)),
    from: request.ip,
    requestId: request.id,
  });
  const refuseUnknown = () => {
    throw new AdminRefusal(404, "unknown_path", "There is nothing at this path and method.", `Go to ${path}/.`);
  };
  const app = createApp(options);
  app.register(cookies);
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    if (request.routeOptions.config.access === "anyone") return;
    reply.headers({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
    // This check comes first, also for a page that is requested with a wrong method: a missing path needs no protection
    // against other sites.
    if (request.is404 || request.routeOptions.url === nowhere) refuseUnknown();
    assertSameOrigin(request.headers, publicUrl, "the operator must set console.public_url");
    if (request.url.startsWith(`${api}/sign-in/`)) return;
    owners.set(request, await signedIn(request, parts));
  });
  app.setNotFoundHandler(refuseUnknown);
  app.register(async (routed) => {
    const signIn = { ...options, sessions, challenges, attempts: new Attempts(clock) };
    addSignIn(routed, api, signIn);
    addOidcSignIn(routed, api, signIn);
    routed.post(`${api}/sign-out`, async (request, reply) => {
      const { account, session } = ownerOf(request);
      const gone = await sessions.end(session);
      const asked = { ...askerOf(request), what: "session.end", target: account.name };
      audit.note(asked, { outcome: "done", facts: { session_id: session.id } });
      return reply.header("set-cookie", gone).send({ signed_out: true });
    });
    const own = ownStore(store, scope);
    const ownParts = { ...options, store: own, challenges: new Challenges({ store: own, clock, random, sealer }) };
    for (const route of ownerRoutes(ownParts, scope)) {
      // Yield, as the admin application does.
      await setImmediate();
      const within = (request: AppRequest, work: () => Promise<ConsoleAnswer>) =>
        scope.run(ownerOf(request), () => (route.write ? work() : turns.of(scope.tag, route.id, work)));
      addRoute(routed, api, route, { audit, askerOf, within });
    }
    // Any other path belongs to a page.
    routed.get(nowhere, refuseUnknown);
    addPages(routed, path, "owner");
  });
  return app;
}

/** What a session is checked with. */
interface SignedInParts {
  readonly store: Store;
  readonly settings: ConsoleSettings;
  readonly sessions: Sessions;
  readonly rates: SessionRates;
}

/** The signed-in account. @throws AdminRefusal 401 without a valid session, 429 above its rate @throws StoreError */
async function signedIn(request: AppRequest, { sessions, rates, store, settings }: SignedInParts): Promise<SignedIn> {
  const session = sessions.named(request.cookies);
  if (session !== undefined) rates.take(session.id);
  const isRunning = session !== undefined && (await sessions.isRunning(session));
  const account = isRunning ? await store.getAccount(session.owner as AccountTag) : undefined;
  // A session by a front is valid only while the front names the same account.
  const isNamed = session?.way !== "front" || namedByFront(request, settings) === account?.name;
  if (session === undefined || account === undefined || !isNamed) throw signedOut();
  rates.takeOfAccount(account.tag);
  return { session, account, site: siteOf(request.headers, settings.publicUrl) };
}

const whoOf = ({ account, session }: SignedIn): string => `owner:${account.name}:${session.way}`;

function signedOut(): AdminRefusal {
  return new AdminRefusal(
    401,
    "signed_out",
    "You are not signed in, or your session has ended.",
    "Sign in again: with a passkey, or with a link from your operator.",
  );
}
