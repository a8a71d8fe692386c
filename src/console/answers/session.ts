/** Forms of answers about sessions and sign-in. */

import type { Static } from "../vocabulary.ts";
import { anything, count, flag, instant, list, object, oneOf, orNull, text } from "./shape.ts";

const SIGN_IN_METHODS = ["link", "passkey", "oidc", "front", "token"] as const;

export const SessionShape = object("Session", {
  account: text("The account's name.", "alice"),
  status: oneOf(
    "The owner of a suspended or closed account may see everything, but change nothing.",
    "normal",
    "suspended",
    "closed",
  ),
  way: oneOf("The owner's sign-in method.", ...SIGN_IN_METHODS),
  ends_at: instant("When its owner must sign in again."),
  groups: list(text("A group that a key can be in.", "cards")),
  support: object("Support", {
    email: orNull(text("The contact address.", "help@example.com")),
    url: orNull(text("A page for help.", "https://example.com/help")),
  }),
});
export const InvitationShape = object("Invitation", {
  account: text("The account's name.", "alice"),
  link: text("A link that signs its owner in once.", "https://api.example/console/sign-in#0123456789.…"),
  ends_at: instant("When it expires."),
});
/** The passkeys and sessions of an account. */
export const AccessShape = object("Access", {
  account: text("The account's name.", "alice"),
  passkeys: list(
    object("Passkey", {
      id: text("Identifies it in this API; not a secret.", "m3Yx…"),
      name: text("Its display name.", "Laptop of Alice"),
      synced: flag("Whether it may be synced to several devices."),
      added_at: instant("When it was added."),
      used_at: orNull(instant("When it was last used to sign in; null: never.")),
    }),
  ),
  sessions: list(
    object("RunningSession", {
      id: text("Identifies it in this API; not a secret.", "9fQz…"),
      way: oneOf("The sign-in method.", ...SIGN_IN_METHODS),
      from: text("The address from which it was started, or `unknown`.", "192.0.2.7"),
      agent: text("The browser's user agent.", "Mozilla/5.0 …"),
      begun_at: instant("When it was started."),
      ends_at: instant("When it ends."),
      is_this: flag("Whether it is the session of this request."),
    }),
  ),
});
export const SignedOutShape = object("SignedOut", {
  account: text("The account's name.", "alice"),
  sessions: count("Sessions that were ended.", 2),
  links: count("Sign-in links that were revoked.", 0),
  passkeys: count("Passkeys that were removed.", 0),
});
export const PasskeyOptionsShape = object("PasskeyOptions", {
  options: anything("The options for the browser's PublicKeyCredential."),
  sealed: text("To be sent back together with the browser's answer.", "s1…"),
});
/** The available sign-in methods besides links and passkeys. */
export interface SignInMethodsAnswer {
  /** The display name of the OpenID Connect provider. */
  readonly oidc: string | null;
  /** The account that the front names. */
  readonly front: string | null;
}
export type AccessAnswer = Static<typeof AccessShape>;
export type PasskeyOptionsAnswer = Static<typeof PasskeyOptionsShape>;
export type SessionAnswer = Static<typeof SessionShape>;

const OperatorShape = object("OperatorSession", {
  ends_at: orNull(instant("When the operator must sign in again; null: the request has the admin token.")),
  groups: list(text("A group that a key can be in.", "cards")),
  plans: list(text("A plan that an account can have.", "pro")),
  cards: list(text("A kind of time card.", "day")),
  models: list(text("A model's name.", "big-1")),
});
export type OperatorAnswer = Static<typeof OperatorShape>;
