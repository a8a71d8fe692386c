/** Answers of the console that no program asks for. */
import type { Static } from "../schema.ts";
import { instant, list, object, oneOf, orNull, text } from "./shape.ts";

export const SessionShape = object("Session", {
  account: text("The account's name.", "alice"),
  way: oneOf("By what its owner has signed in.", "link", "passkey", "oidc", "front", "token"),
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
export type SessionAnswer = Static<typeof SessionShape>;

const OperatorShape = object("OperatorSession", {
  ends_at: orNull(instant("From when on the operator must sign in again; null: the token was shown.")),
  groups: list(text("A group that a key can be in.", "cards")),
  plans: list(text("A plan that an account can have.", "pro")),
  cards: list(text("A kind of time card.", "day")),
  models: list(text("A model's name.", "big-1")),
});
export type OperatorAnswer = Static<typeof OperatorShape>;
