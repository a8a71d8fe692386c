/** Who has signed in, for all pages of owners. */
import type { SessionAnswer } from "../../answers/session.ts";
import type { Place } from "../parts/router.ts";

export type Session = SessionAnswer;

export interface PageProps {
  readonly session: Session;
  readonly place: Place;
}
