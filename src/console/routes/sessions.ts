/** Sessions and passkeys of an account's console, for operators: list and end them. */
import type { SignInKind } from "../../store/sign-ins.ts";
import { showAccess } from "../answers/access.ts";
import { AccessShape, SignedOutShape } from "../answers/session.ts";
import { accountNamed } from "../named-accounts.ts";
import { SignOutOrder } from "../sign-in/bodies.ts";
import { AccountPath } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

const WITHOUT_PASSKEYS: readonly SignInKind[] = ["link", "session"];
const ALL_WAYS: readonly SignInKind[] = [...WITHOUT_PASSKEYS, "passkey"];

export function sessionRoutes({ store }: ConsoleParts): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/accounts/:name/sessions",
      id: "listSessions",
      summary: "List the sessions of an account's console, and its passkeys",
      answers: { 200: AccessShape },
      refusals: { 404: "`unknown_account`." },
      params: AccountPath,
      async handle({ params }) {
        const { tag, name } = await accountNamed(store, params.name);
        return { status: 200, body: showAccess(name, await store.listSignIns(tag)) };
      },
    }),
    route({
      method: "POST",
      path: "/accounts/:name/sign-out",
      id: "signOutAccount",
      summary: "End all sessions of an account's console, and revoke its unused sign-in links",
      description: "The owner can sign in again with a passkey, unless `passkeys` removes them too.",
      answers: { 200: SignedOutShape },
      refusals: { 404: "`unknown_account`." },
      params: AccountPath,
      body: SignOutOrder,
      write: {
        what: "account.sign_out",
        target: ({ params }) => params.name,
        facts: ({ body }) => ({ passkeys: body.passkeys === true ? "removed" : "kept" }),
        whenUnknown: "Repeat the request: it ends the remaining sessions.",
      },
      async handle({ params, body }) {
        const { tag, name } = await accountNamed(store, params.name);
        const kinds = body.passkeys === true ? ALL_WAYS : WITHOUT_PASSKEYS;
        // Counted a moment before, so sessions that start in between are ended too but not counted.
        const all = await store.listSignIns(tag);
        const count = (kind: SignInKind) => (kinds.includes(kind) ? all.filter((one) => one.kind === kind).length : 0);
        // In one call: otherwise a remaining session could create a passkey, and a passkey could start a session.
        await store.dropSignIns(tag, ...kinds);
        const sessions = count("session");
        return {
          status: 200,
          body: { account: name, sessions, links: count("link"), passkeys: count("passkey") },
          audit: { sessions: String(sessions) },
        };
      },
    }),
  ];
}
