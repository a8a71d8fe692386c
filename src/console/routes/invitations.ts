/** Sign-in links to the console, which an operator creates for an account's owner. */
import { InvitationShape } from "../answers/session.ts";
import { accountNamed } from "../named-accounts.ts";
import { AdminRefusal } from "../refusal.ts";
import { makeLink } from "../sign-in/links.ts";
import { AccountPath } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** Where the owners' pages are, and how long a link is valid. */
export interface Inviter {
  /** Undefined if there are no pages. */
  readonly invitation?: { readonly lastsMs: number; readonly consoleUrl: () => string } | undefined;
}

export function invitationRoutes({
  store,
  random,
  clock,
  invitation,
}: ConsoleParts & Inviter): readonly ConsoleRoute[] {
  return [
    route({
      method: "POST",
      path: "/accounts/:name/invitations",
      id: "inviteOwner",
      summary: "Create a link with which an account's owner can sign in to the console once",
      description:
        "The link is shown only in this answer. Anyone who has it can sign in, so send it only to the owner.",
      answers: { 201: InvitationShape },
      refusals: { 404: "`unknown_account`.", 409: "`no_console`: this gateway has no pages for owners." },
      params: AccountPath,
      write: {
        what: "account.invite",
        target: ({ params }) => params.name,
        whenUnknown: "Repeat the request: it creates another link, and nobody can use a link that nobody has seen.",
      },
      async handle({ params }) {
        if (invitation === undefined) throw noConsole();
        const { tag, name } = await accountNamed(store, params.name);
        const token = await makeLink(store, random, tag, invitation.lastsMs);
        const endsAt = new Date(clock.wallMs() + invitation.lastsMs).toISOString();
        const link = `${invitation.consoleUrl()}/sign-in#${token}`;
        return { status: 201, body: { account: name, link, ends_at: endsAt } };
      },
    }),
  ];
}

function noConsole(): AdminRefusal {
  return new AdminRefusal(
    409,
    "no_console",
    "This gateway has no pages for key owners.",
    "Set console.enabled to true in the configuration and restart the gateway.",
  );
}
