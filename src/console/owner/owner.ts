/**
 * The console of those who own keys: pages and an API of their own on the address where clients connect, for one account
 * each. It does what the admin API does, by the same routes, and for nothing but the account that has signed in.
 */
import cookies from "@fastify/cookie";
import type { Store } from "../../store/contract.ts";
import type { AccountTag } from "../../values/key.ts";
import type { ConsoleSettings } from "../../values/settings.ts";
import { type App, type AppRequest, addRoute, createApp } from "../app.ts";
import type { Audit } from "../audit.ts";
import { addPages } from "../page-routes.ts";
import { AdminRefusal } from "../refusal.ts";
import type { ConsoleParts } from "../routes/contract.ts";
import { LinkToken, type Static } from "../schema.ts";
import { useLink } from "../sign-in/links.ts";
import { assertSameOrigin } from "../sign-in/same-origin.ts";
import { type Sealer, Sessions } from "../sign-in/sessions.ts";
import type { OwnExplain } from "./help.ts";
import { OwnScope, ownStore, type SignedIn } from "./own-store.ts";
import { ownerRoutes } from "./routes.ts";

interface OwnerConsoleOptions extends ConsoleParts {
  readonly settings: ConsoleSettings;
  readonly sealer: Sealer;
  readonly audit: Audit;
  /** Says what would become of a request of an own key. */
  readonly explain: OwnExplain;
  /** Takes reports of defects, flat objects without secrets. */
  readonly log: (line: object) => void;
}

/** A request as the public listener has judged it. */
interface OwnerRequest {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly clientAddress: string | undefined;
  /** Whether a front that the operator trusts has passed it on. */
  readonly throughFront: boolean;
}

interface OwnerAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const COOKIE_NAME = "__Host-tollgate-owner";

/** Gives the console's answer to a request. Never rejects for a caller's fault. */
export type OwnerConsole = (request: OwnerRequest) => Promise<OwnerAnswer>;

/** Nothing of it is made before the first request. */
export function createOwnerConsole(options: OwnerConsoleOptions): OwnerConsole {
  let app: App | undefined;
  return async ({ method, target, headers, body, clientAddress }) => {
    app ??= ownerApp(options);
    const answer = await app.inject({
      method: method as "GET",
      url: target,
      headers,
      payload: body.length === 0 ? undefined : Buffer.from(body),
      remoteAddress: clientAddress ?? "",
    });
    return { status: answer.statusCode, headers: single(answer.headers), body: answer.rawPayload };
  };
}

function ownerApp(options: OwnerConsoleOptions): App {
  const { settings, store, clock, random, sealer, audit } = options;
  const { path, publicUrl, sessionMs } = settings;
  const api = `${path}/api`;
  const sessions = new Sessions({ store, clock, random, sealer, lastsMs: sessionMs, cookieName: COOKIE_NAME });
  const scope = new OwnScope();
  const owners = new WeakMap<AppRequest, SignedIn>();
  const ownerOf = (request: AppRequest) => owners.get(request) as SignedIn;
  const app = createApp(options);
  app.register(cookies);
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    if (request.routeOptions.config.access === "anyone") return;
    reply.headers({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
    assertSameOrigin(request.headers, publicUrl);
    if (request.url.startsWith(`${api}/sign-in/`)) return;
    owners.set(request, await signedIn(request, sessions, store));
  });
  app.setNotFoundHandler(() => {
    throw new AdminRefusal(404, "unknown_path", "There is nothing at this path and method.", `Go to ${path}/.`);
  });
  app.register(async (routed) => {
    addSignIn(routed, api, sessions, options);
    routed.post(`${api}/sign-out`, async (request, reply) => {
      const gone = await sessions.end(ownerOf(request).session);
      return reply.header("set-cookie", gone).send({ signed_out: true });
    });
    for (const route of ownerRoutes({ ...options, store: ownStore(store, scope) }, scope)) {
      addRoute(routed, api, route, {
        audit,
        askerOf: (request) => ({ who: whoOf(ownerOf(request)), from: request.ip, requestId: request.id }),
        within: (request, work) => scope.run(ownerOf(request), work),
      });
    }
    addPages(routed, path, "owner");
  });
  return app;
}

/** What lets somebody in, for who is not in yet. */
function addSignIn(app: App, api: string, sessions: Sessions, { store }: OwnerConsoleOptions): void {
  app.post(`${api}/sign-in/link`, { schema: { body: LinkToken } }, async (request, reply) => {
    const { token } = request.body as Static<typeof LinkToken>;
    const tag = await useLink(store, token);
    if (tag === undefined) throw noSuchLink();
    const cookie = await sessions.begin(tag, "link");
    return reply.header("set-cookie", cookie).send({ signed_in: true });
  });
}

/** @throws AdminRefusal 401 without a session that counts. @throws StoreError */
async function signedIn(request: AppRequest, sessions: Sessions, store: Store): Promise<SignedIn> {
  const session = await sessions.find(request.cookies);
  const account = session === undefined ? undefined : await store.getAccount(session.owner as AccountTag);
  if (session !== undefined && account !== undefined) return { session, account };
  throw new AdminRefusal(
    401,
    "signed_out",
    "Nobody is signed in, or not any more.",
    "Sign in again: with a passkey, or with a link from your operator.",
  );
}

const whoOf = ({ account, session }: SignedIn): string => `owner:${account.name}:${session.way}`;

function noSuchLink(): AdminRefusal {
  return new AdminRefusal(
    401,
    "link_is_over",
    "This sign-in link does not open: it was used, or its time is over.",
    "Ask your operator for another one; each opens once.",
  );
}

/** A header that is there twice would be the last one here: the console sends none of that kind. */
function single(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const own = Object.entries(headers).filter(([name, value]) => value !== undefined && !OF_THE_CONNECTION.has(name));
  return Object.fromEntries(own.map(([name, value]) => [name, String(value)]));
}

/** What whoever writes the answer sets. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "transfer-encoding",
]);
