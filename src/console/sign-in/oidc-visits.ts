/**
 * Visits to an OpenID Connect provider: the state with which a browser is redirected, sealed in its own cookie, and the
 * check of what it returns with. Independent of the session that follows.
 */
import type { OidcSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import type { ConsoleLog } from "../app.ts";
import { AdminRefusal } from "../refusal.ts";
import type { ClaimFault } from "./claims.ts";
import type { OidcFlow, OidcProvider } from "./oidc.ts";
import type { Sealer } from "./sessions.ts";

/** The time that a person may take at the provider. */
export const VISIT_MS = 10 * 60_000;

interface VisitParts {
  readonly oidc: OidcSettings;
  /** The path of the redirect URI, below the origin of the pages. */
  readonly path: string;
  /** The name of the cookie. Different for each listener, because cookies are shared between ports. */
  readonly cookieName: string;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Receives reports, flat objects without secrets. */
  readonly log: ConsoleLog;
}

interface SealedFlow extends OidcFlow {
  readonly until: number;
}

interface Visited {
  /** The provider's claims about the person. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Identifies this visit; the caller uses it up when a session starts. */
  readonly state: string;
}

export class OidcVisits {
  readonly #parts: VisitParts;
  #provider: OidcProvider | undefined;

  constructor(parts: VisitParts) {
    this.#parts = parts;
  }

  /**
   * @param origin of the pages
   * @returns the address to redirect to, and the `set-cookie` header
   * @throws AdminRefusal
   */
  async begin(origin: string): Promise<{ readonly location: string; readonly cookie: string }> {
    const { sealer, clock, cookieName, path } = this.#parts;
    const { location, flow } = await this.#telling((provider) => provider.begin(origin + path));
    const sealed: SealedFlow = { ...flow, until: clock.wallMs() + VISIT_MS };
    const value = sealer.seal(Buffer.from(JSON.stringify(sealed)), this.#context);
    // Lax, because the browser returns from another site.
    const cookie = `${cookieName}=${value}; Path=/; Max-Age=${VISIT_MS / 1_000}; HttpOnly; Secure; SameSite=Lax`;
    return { location, cookie };
  }

  /** The visit that the browser has started here; undefined if there is none, or it has expired. */
  begun(cookies: Readonly<Record<string, string | undefined>>): OidcFlow | undefined {
    const { sealer, clock, cookieName } = this.#parts;
    const opened = sealer.open(cookies[cookieName] ?? "", this.#context);
    const flow = opened && (JSON.parse(Buffer.from(opened).toString()) as SealedFlow);
    return flow && flow.until > clock.wallMs() ? flow : undefined;
  }

  /**
   * Completes a visit.
   * @param target the path and query with which the browser has returned
   * @throws AdminRefusal 401, 503
   */
  async finish(target: string, flow: OidcFlow): Promise<Visited> {
    const { oidc } = this.#parts;
    const query = `?${target.split("?").slice(1).join("?")}`;
    return { claims: await this.#telling((one) => one.finish(query, flow, oidc.claim)), state: flow.state };
  }

  get #context(): string {
    return `console oidc ${this.#parts.cookieName}`;
  }

  /** Turns a failure of the provider into a refusal, and logs its reason. @throws AdminRefusal */
  async #telling<T>(work: (provider: OidcProvider) => Promise<T>): Promise<T> {
    // Loaded when it is first needed.
    const { OidcFailure, OidcProvider: Provider } = await import("./oidc.ts");
    this.#provider ??= new Provider(this.#parts.oidc);
    try {
      return await work(this.#provider);
    } catch (error) {
      if (!(error instanceof OidcFailure)) throw error;
      const level = error.kind === "unreachable" ? "warn" : "info";
      this.#parts.log({ event: "oidc_failed", kind: error.kind, reason: error.word }, level);
      throw error.kind === "refused" ? oidcRefused("oidc_refused") : silent();
    }
  }
}

const MESSAGES = {
  oidc_over: "This sign-in was started in another window, was already used, or took too long.",
  oidc_refused: "The provider did not confirm your identity.",
  oidc_no_account: "There is no account with the name that the provider has for you.",
  claim_missing: "The provider did not send the name of your account.",
  claim_no_name: "The name that the provider sent is not a valid account name.",
  email_unverified: "The provider has not verified your email address.",
} as const satisfies Record<ClaimFault | `oidc_${string}`, string>;

export function oidcRefused(code: keyof typeof MESSAGES): AdminRefusal {
  return new AdminRefusal(401, code, MESSAGES[code], "Start again, or ask your operator.");
}

function silent(): AdminRefusal {
  const remedy = "Try again in a moment. If the problem persists, ask your operator.";
  return new AdminRefusal(503, "oidc_unreachable", "The provider does not answer.", remedy, { "retry-after": "5" });
}
