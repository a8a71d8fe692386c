/** An owner's passkeys and running sessions: list, change and end them. */

import type { Store } from "../../store/contract.ts";
import type { Clock } from "../../values/time.ts";
import { showAccess } from "../answers/access.ts";
import { AccessShape, PasskeyOptionsShape } from "../answers/session.ts";
import { AdminRefusal } from "../refusal.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import { NewPasskey, PasskeyName, SignInPath } from "../sign-in/bodies.ts";
import type { Challenges } from "../sign-in/challenges.ts";
import { type KeptPasskey, passkeyId, passkeyIn, passkeysOf } from "../sign-in/kept-passkeys.ts";
import { sessionsOf } from "../sign-in/sessions.ts";
import { assertNamed } from "../sign-in/site.ts";
import type { OwnScope } from "./own-store.ts";

interface AccessParts {
  /** The store, restricted to the owner's account. */
  readonly store: Store;
  readonly clock: Clock;
  readonly challenges: Challenges;
}

const AGAIN = "Load the list again, and repeat the request if it is still needed.";

/** Routes that also work for a suspended account, because they only remove access. */
export const ENDS_ACCESS: ReadonlySet<string> = new Set(["endSession", "endOtherSessions", "removePasskey"]);

export function accessRoutes(parts: AccessParts, scope: OwnScope): readonly ConsoleRoute[] {
  return [accessRoute, newPasskeyRoutes, passkeyRoutes, sessionRoutes].flatMap((make) => make(parts, scope));
}

function accessRoute({ store }: AccessParts, scope: OwnScope): ConsoleRoute {
  return route({
    method: "GET",
    path: "/access",
    id: "showAccess",
    summary: "List the passkeys and the running sessions of the account",
    answers: { 200: AccessShape },
    handle: async () => ({ status: 200, body: await ofOwner(store, scope).shown() }),
  });
}

/** A challenge to create a passkey is valid only for this session. */
const purposeOf = (scope: OwnScope): string => `add ${scope.owner.session.id}`;

/** The answer and the audit target that all these writes share. */
function ofOwner(store: Store, scope: OwnScope) {
  const shown = async () => {
    const { account, session } = scope.owner;
    return showAccess(account.name, await store.listSignIns(account.tag), session.id);
  };
  return { shown, target: () => scope.owner.account.name };
}

function newPasskeyRoutes({ store, clock, challenges }: AccessParts, scope: OwnScope): readonly ConsoleRoute[] {
  const { shown, target } = ofOwner(store, scope);
  return [
    route({
      method: "POST",
      path: "/passkeys/options",
      id: "askForPasskey",
      summary: "Get the options with which a browser creates a passkey",
      answers: { 200: PasskeyOptionsShape },
      async handle() {
        const { account, site } = scope.owner;
        assertNamed(site);
        const { creationOptions } = await import("../sign-in/passkeys.ts");
        const { challenge, sealed } = challenges.make(purposeOf(scope));
        const known = passkeysOf(await store.listSignIns(account.tag));
        return { status: 200, body: { options: await creationOptions(site, account, challenge, known), sealed } };
      },
    }),
    route({
      method: "POST",
      path: "/passkeys",
      id: "addPasskey",
      summary: "Add a passkey",
      answers: { 201: AccessShape },
      body: NewPasskey,
      write: { what: "passkey.add", target, facts: ({ body: { name } }) => ({ name }), whenUnknown: AGAIN },
      async handle({ body: { sealed, name, credential } }) {
        const { account, site, session } = scope.owner;
        const { checkCreation } = await import("../sign-in/passkeys.ts");
        const challenge = challenges.open(sealed, purposeOf(scope));
        const made = challenge && (await checkCreation(site, challenge, credential));
        if (!made || !(await challenges.spend(account.tag, challenge))) throw notMade();
        const kept: KeptPasskey = { ...made, name, addedAtMs: clock.wallMs() };
        const id = passkeyId(made.credential);
        const answer = await store.keepSignIn(account.tag, {
          kind: "passkey",
          id,
          data: JSON.stringify(kept),
          only: "new",
          // If the session was ended in the meantime, nothing is kept that could sign anyone in.
          by: { kind: "session", id: session.id },
        });
        if (answer === "too_many") throw tooManyPasskeys();
        if (answer === "unmet") throw notMade();
        return { status: 201, body: await shown(), audit: { passkey_id: id } };
      },
    }),
  ];
}

function passkeyRoutes({ store }: AccessParts, scope: OwnScope): readonly ConsoleRoute[] {
  const { shown, target } = ofOwner(store, scope);
  return [
    route({
      method: "PUT",
      path: "/passkeys/:id/name",
      id: "renamePasskey",
      summary: "Rename a passkey",
      answers: { 200: AccessShape },
      params: SignInPath,
      body: PasskeyName,
      write: {
        what: "passkey.rename",
        target,
        facts: ({ params: { id }, body: { name } }) => ({ passkey_id: id, name }),
        whenUnknown: AGAIN,
      },
      async handle({ params: { id }, body: { name } }) {
        for (let record = await store.findSignIn(scope.tag, "passkey", id); record !== undefined; ) {
          const { id: _, ...kept } = passkeyIn(record);
          const change = { kind: "passkey", id, data: JSON.stringify({ ...kept, name }), was: record.data } as const;
          if ((await store.keepSignIn(scope.tag, { ...change, only: "known" })) === "kept") {
            return { status: 200, body: await shown() };
          }
          // The passkey was used or removed in the meantime.
          record = await store.findSignIn(scope.tag, "passkey", id);
        }
        throw notThere();
      },
    }),
    route({
      method: "POST",
      path: "/passkeys/:id/remove",
      id: "removePasskey",
      summary: "Remove a passkey; it can no longer sign anyone in",
      description: "Sessions that were started with it continue; end them too.",
      answers: { 200: AccessShape },
      params: SignInPath,
      write: {
        what: "passkey.remove",
        target,
        facts: ({ params: { id } }) => ({ passkey_id: id }),
        whenUnknown: AGAIN,
      },
      async handle({ params: { id } }) {
        const was = await store.dropSignIn(scope.tag, "passkey", id);
        return { status: 200, body: await shown(), repeated: !was };
      },
    }),
  ];
}

function sessionRoutes({ store }: AccessParts, scope: OwnScope): readonly ConsoleRoute[] {
  const { shown, target } = ofOwner(store, scope);
  return [
    route({
      method: "POST",
      path: "/sessions/:id/end",
      id: "endSession",
      summary: "End a session",
      answers: { 200: AccessShape },
      params: SignInPath,
      write: { what: "session.end", target, facts: ({ params: { id } }) => ({ session_id: id }), whenUnknown: AGAIN },
      async handle({ params: { id } }) {
        const was = await store.dropSignIn(scope.tag, "session", id);
        return { status: 200, body: await shown(), repeated: !was };
      },
    }),
    route({
      method: "POST",
      path: "/sessions/end-others",
      id: "endOtherSessions",
      summary: "End all sessions except the current one",
      answers: { 200: AccessShape },
      write: { what: "session.end_others", target, whenUnknown: AGAIN },
      async handle() {
        const all = sessionsOf(await store.listSignIns(scope.tag));
        const others = all.filter(({ id }) => id !== scope.owner.session.id);
        for (const { id } of others) await store.dropSignIn(scope.tag, "session", id);
        return { status: 200, body: await shown(), audit: { sessions: String(others.length) } };
      },
    }),
  ];
}

function notMade(): AdminRefusal {
  return new AdminRefusal(
    400,
    "passkey_not_made",
    "This passkey was not added: the challenge was already used, has expired, or the answer does not match it.",
    "Start again; you have five minutes.",
  );
}

function tooManyPasskeys(): AdminRefusal {
  return new AdminRefusal(
    409,
    "too_many_passkeys",
    "This account has reached the limit of passkeys.",
    "Remove one that is no longer needed.",
  );
}

function notThere(): AdminRefusal {
  return new AdminRefusal(404, "unknown_passkey", "There is no such passkey.", "Load the list again.");
}
