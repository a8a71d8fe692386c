/** The properties of all owner pages. */
import type { SessionAnswer } from "../../answers/session.ts";
import type { PagePlace } from "../parts/router.ts";

export interface PageProps {
  readonly session: SessionAnswer;
  readonly place: PagePlace;
}
