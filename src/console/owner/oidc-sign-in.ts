/** Sign-in with an OpenID Connect provider: a claim contains the name of an account. */
import type { Account } from "../../store/records.ts";
import type { App, AppRequest } from "../app.ts";
import { createOrFind } from "../named-accounts.ts";
import { AdminRefusal } from "../refusal.ts";
import { nameIn } from "../sign-in/claims.ts";
import { OidcVisits, oidcRefused, VISIT_MS } from "../sign-in/oidc-visits.ts";
import { siteOf } from "../sign-in/site.ts";
import { type SignInParts, startSession } from "./sign-in.ts";

const COOKIE_NAME = "__Host-tollgate-oidc";

/** @param api the path of the console's API; the provider redirects to `PATH/sign-in/oidc` */
export function addOidcSignIn(app: App, api: string, parts: SignInParts): void {
  const { oidc, path: root, publicUrl } = parts.settings;
  if (oidc === undefined) return;
  const path = `${root}/sign-in/oidc`;
  const visits = new OidcVisits({ ...parts, oidc, path, cookieName: COOKIE_NAME });
  app.post(`${api}/sign-in/oidc`, async (request, reply) => {
    parts.attempts.take(request.ip);
    const { location, cookie } = await visits.begin(siteOf(request.headers, publicUrl).origin);
    return reply.header("set-cookie", cookie).send({ location });
  });
  app.get(path, { config: { access: "anyone" } }, async (request, reply) => {
    reply.headers({
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
    const visit = visits.begun(request.cookies);
    // Any site can make a browser send this request, for example as an image. Without a visit it is not an attempt to
    // sign in, so it is not counted.
    if (visit === undefined) return reply.redirect(`${root}/sign-in?refused=oidc_over`, 303);
    try {
      await startSession(parts, request, reply, "oidc", async (named) => {
        const { claims, state } = await visits.finish(request.url, visit);
        const name = nameIn(claims, oidc.claim);
        if ("fault" in name) throw oidcRefused(name.fault);
        named(name.name);
        const account = await accountOf(parts, request, name.name);
        if (!(await parts.challenges.spend(account.tag, state, VISIT_MS))) throw oidcRefused("oidc_over");
        return account;
      });
      return reply.redirect(`${root}/`, 303);
    } catch (error) {
      // A person, not a program, sees this answer: the page shows the refusal in their language.
      if (!(error instanceof AdminRefusal)) throw error;
      return reply.redirect(`${root}/sign-in?refused=${error.code}`, 303);
    }
  });
}

/** The account that the claim names; created if that is enabled. @throws AdminRefusal 401 @throws StoreError */
async function accountOf(parts: SignInParts, { ip, id }: AppRequest, name: string): Promise<Account> {
  const { store, settings, catalog, audit } = parts;
  const found = await store.findAccount(name);
  if (found !== undefined) return found;
  if (!settings.oidc?.createAccounts) throw oidcRefused("oidc_no_account");
  const { plans, defaultPlan } = catalog();
  // A reload may have removed the plan.
  const plan = settings.oidc.plan !== undefined && plans.has(settings.oidc.plan) ? settings.oidc.plan : defaultPlan;
  const { account, created } = await createOrFind(parts, name, plan);
  const asked = { who: "oidc", from: ip, requestId: id, what: "account.create", target: account.name };
  if (created) audit.note(asked, { outcome: "done", facts: { plan } });
  return account;
}
