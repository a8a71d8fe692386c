/**
 * Visits to a provider of OpenID Connect: what a browser is sent there with, sealed in a cookie of its own, and what it comes
 * back with. Knows nothing of whose session begins then.
 */
import type { OidcSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import type { ConsoleLog } from "../app.ts";
import { AdminRefusal } from "../refusal.ts";
import type { ClaimFault } from "./claims.ts";
import type { OidcFlow, OidcProvider } from "./oidc.ts";
import type { Sealer } from "./sessions.ts";

/** How long somebody may take at the provider. */
export const VISIT_MS = 10 * 60_000;

interface VisitParts {
  readonly oidc: OidcSettings;
  /** Where the provider sends people back to, below the origin of the pages. */
  readonly path: string;
  /** One for each listener, since ports share cookies. */
  readonly cookieName: string;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Takes reports, flat objects without secrets. */
  readonly log: ConsoleLog;
}

interface SealedFlow extends OidcFlow {
  readonly until: number;
}

interface Visited {
  /** What the provider says of who has come back. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Of this visit: spent by whoever begins a session for it. */
  readonly state: string;
}

export class OidcVisits {
  readonly #parts: VisitParts;
  #provider: OidcProvider | undefined;

  constructor(parts: VisitParts) {
    this.#parts = parts;
  }

  /** @param origin of the pages. @returns where to send the browser, and the `set-cookie` header. @throws AdminRefusal */
  async begin(origin: string): Promise<{ readonly location: string; readonly cookie: string }> {
    const { sealer, clock, cookieName, path } = this.#parts;
    const { location, flow } = await this.#telling((provider) => provider.begin(origin + path));
    const sealed: SealedFlow = { ...flow, until: clock.wallMs() + VISIT_MS };
    const value = sealer.seal(Buffer.from(JSON.stringify(sealed)), this.#context);
    // Lax, since the browser comes back from another site.
    const cookie = `${cookieName}=${value}; Path=/; Max-Age=${VISIT_MS / 1_000}; HttpOnly; Secure; SameSite=Lax`;
    return { location, cookie };
  }

  /** The visit that a browser has begun here; undefined when there is none, or it is over. */
  begun(cookies: Readonly<Record<string, string | undefined>>): OidcFlow | undefined {
    const { sealer, clock, cookieName } = this.#parts;
    const opened = sealer.open(cookies[cookieName] ?? "", this.#context);
    const flow = opened && (JSON.parse(Buffer.from(opened).toString()) as SealedFlow);
    return flow && flow.until > clock.wallMs() ? flow : undefined;
  }

  /** @param target what the browser asks for when it is back, with its query. @throws AdminRefusal 401, 503 */
  async finish(target: string, flow: OidcFlow): Promise<Visited> {
    const { oidc } = this.#parts;
    const query = `?${target.split("?").slice(1).join("?")}`;
    return { claims: await this.#telling((one) => one.finish(query, flow, oidc.claim)), state: flow.state };
  }

  get #context(): string {
    return `console oidc ${this.#parts.cookieName}`;
  }

  /** A failure of the provider in our words, and a line in the log that says what it was. @throws AdminRefusal */
  async #telling<T>(work: (provider: OidcProvider) => Promise<T>): Promise<T> {
    // Loaded when somebody comes this way.
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
