/**
 * The operator's console on the admin listener: pages that call the admin API, and a session in place of the token, so
 * that the browser does not have to store the token. Nothing of it is created before a browser asks for it.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Catalog } from "../../values/catalog.ts";
import type { RandomBytes } from "../../values/key.ts";
import type { OperatorOidcSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import type { Access, AccessReason } from "../access.ts";
import type { OperatorAnswer } from "../answers/session.ts";
import type { App, AppRequest, ConsoleLog } from "../app.ts";
import type { Audit } from "../audit/audit.ts";
import { ADMIN_PREFIX, addPages } from "../page-routes.ts";
import { AdminRefusal } from "../refusal.ts";
import type { AuditFacts, ConsoleParts } from "../routes/contract.ts";
import { Attempts } from "../sign-in/attempts.ts";
import { Challenges } from "../sign-in/challenges.ts";
import { assertSameOrigin } from "../sign-in/same-origin.ts";
import { type Sealer, type Session, Sessions } from "../sign-in/sessions.ts";
import { closed, type Static, Type } from "../vocabulary.ts";
import type { AskedFrom } from "./asked-from.ts";
import { addByProvider } from "./by-provider.ts";
import { keptSessions } from "./kept-sessions.ts";

/** What an operator types to sign in. */
const ShownToken = Type.Object(
  {
    token: Type.String({
      pattern: "^[!-~]{1,512}$",
      description: "the admin token",
      "x-remedy": "It is admin_token in the configuration, or in the file admin-token in the data folder.",
    }),
  },
  closed,
);

/** The path of the pages. */
const ROOT = "/console";
const COOKIE_NAME = "__Host-tollgate-operator";
const SIGNED_IN = "operator:session";
/** The operator's pages are served only at the address of the admin listener. */
const BEHIND_A_FRONT = "it must forward Host";

export interface OperatorPages {
  readonly sealer: Sealer;
  /** How long a session lasts. */
  readonly sessionMs: number;
  /** If undefined, the admin token is the only sign-in method. */
  readonly oidc?: OperatorOidcSettings | undefined;
}

interface OperatorParts extends OperatorPages {
  readonly store: ConsoleParts["store"];
  readonly catalog: () => Catalog;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly access: Access;
  /** Whether the listener is a unix socket. */
  readonly isUnix: boolean;
  readonly from: AskedFrom;
  readonly audit: Audit;
  readonly log: ConsoleLog;
  readonly onAccessRefused?: ((reason: AccessReason) => void) | undefined;
}

/** The functions that the admin listener calls. */
export interface OperatorConsole {
  /** Whether a browser asks for the page at `/`. */
  readonly isVisit: (request: AppRequest) => boolean;
  /**
   * Whether a session admits the request. If false, the request has no session and needs the token.
   * @throws AdminRefusal 403 for a request from another site, 401 for a request of a page whose session has ended
   */
  readonly admits: (request: AppRequest) => Promise<boolean>;
  /** Who asks, if a session has admitted the request. */
  readonly whoOf: (request: AppRequest) => string | undefined;
  /** Adds the pages and the sign-in routes to the listener. */
  readonly add: (app: App) => void;
}

export function operatorConsole(parts: OperatorParts): OperatorConsole {
  const { store, clock, random, sessionMs, access, catalog } = parts;
  const signedIn = new WeakMap<AppRequest, Session>();
  let made: Sessions | undefined;
  const sessions = () => {
    made ??= new Sessions({
      store: keptSessions(store, clock),
      clock,
      random,
      sealer: boundTo(access.digest ?? "", parts.sealer),
      lastsMs: sessionMs,
      cookieName: COOKIE_NAME,
    });
    return made;
  };
  const find = async (headers: IncomingHttpHeaders): Promise<Session | undefined> => {
    const value = cookieOf(headers.cookie, COOKIE_NAME);
    if (value === undefined || access.digest === undefined) return undefined;
    const session = await sessions().find({ [COOKIE_NAME]: value });
    return session?.owner === "operator" ? session : undefined;
  };
  return {
    isVisit: ({ method, url, headers }) =>
      method === "GET" && url === "/" && /\btext\/html\b/.test(headers.accept ?? ""),
    async admits(request) {
      const { headers } = request;
      if (headers.authorization !== undefined) return false;
      const isPage = headers["x-tollgate-console"] === "1";
      if (!isPage && cookieOf(headers.cookie, COOKIE_NAME) === undefined) return false;
      assertSameOrigin(headers, parts.oidc?.publicUrl, BEHIND_A_FRONT);
      const session = await find(headers);
      if (session === undefined) throw signedOut();
      signedIn.set(request, session);
      return true;
    },
    whoOf(request) {
      const session = signedIn.get(request);
      return session && nameOfSession(session);
    },
    add(app) {
      const open = { config: { access: "anyone" as const }, schema: { body: ShownToken } };
      app.post(`${ADMIN_PREFIX}/session`, open, async (request, reply) => {
        countingRefusals(parts, () => assertSameOrigin(request.headers, parts.oidc?.publicUrl, BEHIND_A_FRONT));
        const { token } = request.body as Static<typeof ShownToken>;
        const peer = { address: request.socket.remoteAddress, unix: parts.isUnix, headers: request.headers };
        countingRefusals(parts, () => access.signIn(peer, token));
        await audited(parts, request, "operator.sign_in", async () => {
          reply.header("set-cookie", await sessions().begin("operator", "token"));
          return undefined;
        });
        return reply.code(201).send({ signed_in: true });
      });
      app.get(`${ADMIN_PREFIX}/session`, async (request) => showSession(signedIn.get(request), catalog()));
      app.post(`${ADMIN_PREFIX}/session/end`, async (request, reply) => {
        const session = signedIn.get(request);
        if (session) {
          await audited(parts, request, "operator.sign_out", async () => {
            reply.header("set-cookie", await sessions().end(session));
            return undefined;
          });
        }
        return reply.send({ signed_out: true });
      });
      const anyone = { config: { access: "anyone" as const }, schema: { hide: true } };
      app.get(`${ADMIN_PREFIX}/session/ways`, anyone, async () => ({ oidc: labelOf(parts.oidc) }));
      if (parts.oidc !== undefined && access.digest !== undefined) addProvider(app, parts, parts.oidc, sessions);
      addPages(app, ROOT, "operator");
    },
  };
}

function addProvider(app: App, parts: OperatorParts, settings: OperatorOidcSettings, sessions: () => Sessions): void {
  const { store, clock, log, random, audit, from } = parts;
  const sealer = boundTo(parts.access.digest ?? "", parts.sealer);
  const challenges = new Challenges({ store, sealer, clock, random });
  addByProvider(app, {
    settings,
    root: ROOT,
    from,
    sealer,
    clock,
    attempts: new Attempts(clock),
    log,
    spend: (text, lastsMs) => challenges.spend("operator", text, lastsMs),
    async begin(request, name) {
      let cookie = "";
      await audited(parts, request, "operator.sign_in", async () => {
        cookie = await sessions().begin("operator", "oidc");
        const session = sessions().named({ [COOKIE_NAME]: cookieOf(cookie, COOKIE_NAME) });
        return { person: name, ...(session && { session: nameOfSession(session) }) };
      });
      return cookie;
    },
    refused(request, error, name) {
      const asked = {
        who: "nobody",
        from: from(request),
        requestId: request.id,
        what: "operator.sign_in",
        target: "console",
      };
      const isRefused = error instanceof AdminRefusal && error.status < 500;
      const cause = error instanceof AdminRefusal ? error.code : "internal";
      const facts = { way: "oidc", person: name };
      audit.note(asked, { outcome: isRefused ? "refused" : "unknown", cause, facts });
    },
    cookieOf,
  });
}

const labelOf = (settings: OperatorOidcSettings | undefined): string | null =>
  settings === undefined ? null : (settings.oidc.label ?? new URL(settings.oidc.issuer).host);

/**
 * The name of the session in the audit. For a session by a provider, the audit line of its sign-in names the person.
 */
const nameOfSession = ({ way, id }: Session): string =>
  way === "oidc" ? `operator:oidc:${id.slice(0, 8)}` : SIGNED_IN;

/**
 * Writes sign-ins and sign-outs to the audit. A wrong token is only counted; its lines would evict those of real
 * writes.
 */
async function audited(
  { audit, from }: Pick<OperatorParts, "audit" | "from">,
  request: AppRequest,
  what: string,
  work: () => Promise<AuditFacts | undefined>,
): Promise<void> {
  const write = { what, target: () => "console", whenUnknown: "Try again." };
  const asker = { who: SIGNED_IN, from: from(request), requestId: request.id };
  const nothing = { params: {}, query: {}, body: {} };
  await audit.run({ write }, nothing, asker, async () => {
    const facts = await work();
    return { status: 200, body: {}, ...(facts && { audit: facts }) };
  });
}

function countingRefusals({ onAccessRefused }: OperatorParts, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (error instanceof AdminRefusal) onAccessRefused?.(error.code as AccessReason);
    throw error;
  }
}

/** A sealer bound to the token: when the token changes, its sessions cannot be opened any more. */
function boundTo(digest: string, sealer: Sealer): Sealer {
  const own = (context: string) => `${context} of the operator, token ${digest}`;
  return {
    seal: (content, context) => sealer.seal(content, own(context)),
    open: (envelope, context) => sealer.open(envelope, own(context)),
  };
}

function cookieOf(header = "", name: string): string | undefined {
  const found = header.split(";").find((part) => part.trimStart().startsWith(`${name}=`));
  return found?.slice(found.indexOf("=") + 1).trim();
}

/** The choices for forms, and when the session ends. */
function showSession(session: Session | undefined, { groups, plans, cards, models }: Catalog): OperatorAnswer {
  return {
    ends_at: session === undefined ? null : new Date(session.endsAtMs).toISOString(),
    groups: [...groups.keys()],
    plans: [...plans],
    cards: [...cards.keys()],
    models: [...models.keys()],
  };
}

function signedOut(): AdminRefusal {
  return new AdminRefusal(
    401,
    "signed_out",
    "You are not signed in, or your session has ended.",
    "Sign in again with the admin token.",
  );
}
