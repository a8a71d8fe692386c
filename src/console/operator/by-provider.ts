/**
 * Sign-in to the operator's pages with an OpenID Connect provider: only for people whom a claim identifies as
 * operators.
 */
import type { OperatorOidcSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import type { App, AppRequest, ConsoleLog } from "../app.ts";
import { ADMIN_PREFIX } from "../page-routes.ts";
import { AdminRefusal } from "../refusal.ts";
import type { Attempts } from "../sign-in/attempts.ts";
import type { OidcFlow } from "../sign-in/oidc.ts";
import { OidcVisits, oidcRefused, VISIT_MS } from "../sign-in/oidc-visits.ts";
import { assertSameOrigin } from "../sign-in/same-origin.ts";
import type { Sealer } from "../sign-in/sessions.ts";
import { siteOf } from "../sign-in/site.ts";
import type { AskedFrom } from "./asked-from.ts";

const COOKIE_NAME = "__Host-tollgate-operator-oidc";

interface ByProviderParts {
  readonly settings: OperatorOidcSettings;
  /** The path of the pages. */
  readonly root: string;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly attempts: Attempts;
  readonly from: AskedFrom;
  readonly log: ConsoleLog;
  /** Uses up a text that must count once. @returns whether this was the first time */
  readonly spend: (text: string, lastsMs: number) => Promise<boolean>;
  /** Starts a session. @param name of the person, for the audit. @returns the `set-cookie` header */
  readonly begin: (request: AppRequest, name: string) => Promise<string>;
  /** Writes a refused person to the audit. @param name of the person, as the provider sent it */
  readonly refused: (request: AppRequest, error: unknown, name: string) => void;
  /** Reads a cookie of the request. */
  readonly cookieOf: (header: string | undefined, name: string) => string | undefined;
}

export function addByProvider(app: App, parts: ByProviderParts): void {
  const { settings, root, attempts } = parts;
  const { oidc, publicUrl } = settings;
  const path = `${root}/sign-in/oidc`;
  const visits = new OidcVisits({ ...parts, oidc, path, cookieName: COOKIE_NAME });
  /**
   * The name of a person who has returned from the provider and is an operator.
   * @throws AdminRefusal
   * @throws StoreError
   */
  const personOf = async (request: AppRequest, visit: OidcFlow): Promise<string> => {
    let name: string | undefined;
    try {
      const { claims, state } = await visits.finish(request.url, visit);
      name = nameOf(claims);
      if (!isOperator(claims, settings)) throw notOperator();
      if (!(await parts.spend(state, VISIT_MS))) throw oidcRefused("oidc_over");
      return name;
    } catch (error) {
      // Attempts without an identified person are only counted: anyone can make them, and they would evict audit lines
      // of real writes.
      if (name !== undefined) parts.refused(request, error, name);
      throw error;
    }
  };
  const open = { config: { access: "anyone" as const }, schema: { hide: true } };
  app.post(`${ADMIN_PREFIX}/session/oidc`, open, async (request, reply) => {
    assertSameOrigin(request.headers, publicUrl, "it must forward Host, or console.operator.public_url must be set");
    attempts.take(parts.from(request));
    const { location, cookie } = await visits.begin(siteOf(request.headers, publicUrl).origin);
    return reply.header("set-cookie", cookie).send({ location });
  });
  app.get(path, open, async (request, reply) => {
    reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
    const visit = visits.begun({ [COOKIE_NAME]: parts.cookieOf(request.headers.cookie, COOKIE_NAME) });
    // Any site can make a browser send this request, for example as an image. Without a visit it is not an attempt to
    // sign in, so it is not counted.
    if (visit === undefined) return reply.redirect(`${root}/?refused=oidc_over`, 303);
    try {
      attempts.take(parts.from(request));
      const cookie = await parts.begin(request, await personOf(request, visit));
      return reply.header("set-cookie", cookie).redirect(`${root}/`, 303);
    } catch (error) {
      if (!(error instanceof AdminRefusal)) throw error;
      if (error.status === 401 || error.status === 403) attempts.failed(parts.from(request));
      return reply.redirect(`${root}/?refused=${error.code}`, 303);
    }
  });
}

/** Whether the claim, a text or a list of texts, contains one of the allowed values exactly. */
export function isOperator(
  claims: Readonly<Record<string, unknown>>,
  { oidc: { claim }, allowed }: Pick<OperatorOidcSettings, "oidc" | "allowed">,
): boolean {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  // Only a verified email address counts, because anyone can enter any address in a form (OpenID Connect Core 1.0,
  // section 5.7).
  if (claim === "email" && claims.email_verified !== true) return false;
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  return given.some((one) => typeof one === "string" && allowed.includes(one));
}

/** The person's identity for the audit: the provider's `sub`, restricted to characters that are safe in a log line. */
function nameOf({ sub }: Readonly<Record<string, unknown>>): string {
  return (typeof sub === "string" ? sub : "unknown").replaceAll(/[^!-~]/g, "?").slice(0, 64);
}

function notOperator(): AdminRefusal {
  return new AdminRefusal(
    403,
    "oidc_not_operator",
    "You signed in at the provider, but it does not name you as one of this gateway's operators.",
    "Ask the provider's administrator to grant it, or sign in with the admin token.",
  );
}
