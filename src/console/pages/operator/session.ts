/** The properties of all operator pages. */
import type { OperatorAnswer } from "../../answers/session.ts";
import type { PagePlace } from "../parts/router.ts";

export interface OperatorPageProps {
  readonly session: OperatorAnswer;
  readonly place: PagePlace;
}
