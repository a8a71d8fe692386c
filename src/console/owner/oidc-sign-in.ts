/** In by a provider of OpenID Connect: what an owner is sent there with, and what comes back. */
import type { Account } from "../../store/records.ts";
import type { App, AppRequest } from "../app.ts";
import { AdminRefusal } from "../refusal.ts";
import { createOrFind } from "../routes/accounts.ts";
import { type ClaimFault, nameIn } from "../sign-in/claims.ts";
import type { OidcFlow, OidcProvider } from "../sign-in/oidc.ts";
import { siteOf } from "../sign-in/site.ts";
import { letIn, type SignInParts } from "./sign-in.ts";

const COOKIE_NAME = "__Host-tollgate-oidc";
const CONTEXT = "console oidc";
/** How long somebody may take at the provider. */
const FLOW_MS = 10 * 60_000;

interface SealedFlow extends OidcFlow {
  readonly until: number;
}

/** @param api where the pages ask; the provider sends people back to `PATH/sign-in/oidc`. */
export function addOidcSignIn(app: App, api: string, parts: SignInParts): void {
  const { settings, sealer, clock, attempts } = parts;
  const { oidc, path, publicUrl } = settings;
  if (oidc === undefined) return;
  let made: Promise<OidcProvider> | undefined;
  const provider = () => {
    made ??= import("../sign-in/oidc.ts").then(({ OidcProvider: Provider }) => new Provider(oidc));
    return made;
  };
  app.post(`${api}/sign-in/oidc`, async (request, reply) => {
    attempts.take(request.ip);
    const redirect = `${siteOf(request.headers, publicUrl).origin}${path}/sign-in/oidc`;
    const begun = await telling(
      parts,
      provider().then((one) => one.begin(redirect)),
    );
    const sealed: SealedFlow = { ...begun.flow, until: clock.wallMs() + FLOW_MS };
    const value = sealer.seal(Buffer.from(JSON.stringify(sealed)), CONTEXT);
    // Lax, since the browser comes back from another site.
    const cookie = `${COOKIE_NAME}=${value}; Path=/; Max-Age=${FLOW_MS / 1_000}; HttpOnly; Secure; SameSite=Lax`;
    return reply.header("set-cookie", cookie).send({ location: begun.location });
  });
  app.get(`${path}/sign-in/oidc`, { config: { access: "anyone" } }, async (request, reply) => {
    reply.headers({
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
    try {
      await letIn(parts, request, reply, "oidc", async () => {
        const flow = flowOf(parts, request);
        const query = request.url.slice(request.url.indexOf("?") + 1);
        const claims = await telling(
          parts,
          provider().then((one) => one.finish(`?${query}`, flow, oidc.claim)),
        );
        const account = await accountOf(parts, request, nameIn(claims, oidc.claim));
        if (!(await parts.challenges.spend(account.tag, flow.state, FLOW_MS))) throw refused("oidc_over");
        return account;
      });
      return reply.redirect(`${path}/`, 303);
    } catch (error) {
      // A person stands before this answer, not a program: the page says it in their language.
      if (!(error instanceof AdminRefusal)) throw error;
      return reply.redirect(`${path}/sign-in?refused=${error.code}`, 303);
    }
  });
}

/** What this browser was sent away with. @throws AdminRefusal 401 for another's, and for one that is over */
function flowOf({ sealer, clock }: SignInParts, request: AppRequest): OidcFlow {
  const opened = sealer.open(request.cookies[COOKIE_NAME] ?? "", CONTEXT);
  const flow = opened && (JSON.parse(Buffer.from(opened).toString()) as SealedFlow);
  if (!flow || flow.until <= clock.wallMs()) throw refused("oidc_over");
  return flow;
}

/** The account that was named; made where that is allowed. @throws AdminRefusal 401 @throws StoreError */
async function accountOf(
  parts: SignInParts,
  { ip, id }: AppRequest,
  named: ReturnType<typeof nameIn>,
): Promise<Account> {
  if ("fault" in named) throw refused(named.fault);
  const { store, settings, catalog, audit } = parts;
  const found = await store.findAccount(named.name);
  if (found !== undefined) return found;
  if (!settings.oidc?.createAccounts) throw refused("oidc_no_account");
  const { plans, defaultPlan } = catalog();
  // A reload may have taken the plan away.
  const plan = settings.oidc.plan !== undefined && plans.has(settings.oidc.plan) ? settings.oidc.plan : defaultPlan;
  const { account, created } = await createOrFind(parts, named.name, plan);
  const asked = { who: "oidc", from: ip, requestId: id, what: "account.create", target: account.name };
  if (created) audit.note(asked, { outcome: "done", facts: { plan } });
  return account;
}

/** A failure of the provider in our words, and a line in the log that says what it was. @throws AdminRefusal */
async function telling<T>({ log }: SignInParts, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const { OidcFailure } = await import("../sign-in/oidc.ts");
    if (!(error instanceof OidcFailure)) throw error;
    log({ event: "oidc_failed", kind: error.kind, reason: error.word });
    throw error.kind === "refused" ? refused("oidc_refused") : silent();
  }
}

const MESSAGES = {
  oidc_over: "This sign-in was begun in another window, was used, or took too long.",
  oidc_refused: "The provider has not confirmed who you are.",
  oidc_no_account: "There is no account under the name that the provider gives you.",
  claim_missing: "The provider does not say by what name your account goes.",
  claim_no_name: "What the provider says is no name that an account can have.",
  email_unverified: "The provider has not verified your e-mail address.",
} as const satisfies Record<ClaimFault | `oidc_${string}`, string>;

function refused(code: keyof typeof MESSAGES): AdminRefusal {
  return new AdminRefusal(401, code, MESSAGES[code], "Begin again, or ask your operator.");
}

function silent(): AdminRefusal {
  const remedy = "Try again in a moment; if it lasts, ask your operator.";
  return new AdminRefusal(503, "oidc_unreachable", "The provider does not answer.", remedy, { "retry-after": "5" });
}
