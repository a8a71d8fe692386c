/** Answers of the console that no program asks for. */

import type { Static } from "../vocabulary.ts";
import { anything, count, flag, instant, list, object, oneOf, orNull, text } from "./shape.ts";

const SIGN_IN_WAYS = ["link", "passkey", "oidc", "front", "token"] as const;

export const SessionShape = object("Session", {
  account: text("The account's name.", "alice"),
  status: oneOf(
    "The owner of a suspended or closed account may look, and change nothing.",
    "normal",
    "suspended",
    "closed",
  ),
  way: oneOf("By what its owner has signed in.", ...SIGN_IN_WAYS),
  ends_at: instant("From when on its owner must sign in again."),
  groups: list(text("A group that a key can be in.", "cards")),
  support: object("Support", {
    email: orNull(text("Whom to write to.", "help@example.com")),
    url: orNull(text("A page for help.", "https://example.com/help")),
  }),
});
export const InvitationShape = object("Invitation", {
  account: text("The account's name.", "alice"),
  link: text("Opens the console once.", "https://api.example/console/sign-in#0123456789.…"),
  ends_at: instant("From when on it opens nothing."),
});
/** What lets somebody in, and who is in. */
export const AccessShape = object("Access", {
  account: text("The account's name.", "alice"),
  passkeys: list(
    object("Passkey", {
      id: text("Names it here; no secret.", "m3Yx…"),
      name: text("What its owner calls it.", "Laptop of Alice"),
      synced: flag("Whether it may be on several devices."),
      added_at: instant("When it was added."),
      used_at: orNull(instant("When it last let its owner in.")),
    }),
  ),
  sessions: list(
    object("RunningSession", {
      id: text("Names it here; no secret.", "9fQz…"),
      way: oneOf("By what it was begun.", ...SIGN_IN_WAYS),
      from: text("The address that it was begun from, or `unknown`.", "192.0.2.7"),
      agent: text("What the browser calls itself.", "Mozilla/5.0 …"),
      begun_at: instant("When it was begun."),
      ends_at: instant("From when on it is over."),
      is_this: flag("Whether it is the one that asks."),
    }),
  ),
});
export const SignedOutShape = object("SignedOut", {
  account: text("The account's name.", "alice"),
  sessions: count("Sessions that were ended.", 2),
  links: count("Sign-in links that open nothing any more.", 0),
  passkeys: count("Passkeys that were removed.", 0),
});
export const PasskeyOptionsShape = object("PasskeyOptions", {
  options: anything("What the browser's own PublicKeyCredential takes."),
  sealed: text("To be sent back with the browser's answer.", "s1…"),
});
/** By what somebody may come in here, beside links and passkeys. */
export interface SignInWaysAnswer {
  /** What the provider of OpenID Connect is called. */
  readonly oidc: string | null;
  /** The account that the front names. */
  readonly front: string | null;
}
export type AccessAnswer = Static<typeof AccessShape>;
export type PasskeyOptionsAnswer = Static<typeof PasskeyOptionsShape>;
export type SessionAnswer = Static<typeof SessionShape>;

const OperatorShape = object("OperatorSession", {
  ends_at: orNull(instant("From when on the operator must sign in again; null: the token was shown.")),
  groups: list(text("A group that a key can be in.", "cards")),
  plans: list(text("A plan that an account can have.", "pro")),
  cards: list(text("A kind of time card.", "day")),
  models: list(text("A model's name.", "big-1")),
});
export type OperatorAnswer = Static<typeof OperatorShape>;
