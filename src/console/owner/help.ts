/** What the console's help asks: the errors with their words, and what would become of a request of an own key. */
import type { Store } from "../../store/contract.ts";
import { type Cause, ERROR_ROWS } from "../../values/errors.ts";
import { tagOfId } from "../../values/key.ts";
import { type OwnExplanationAnswer, OwnExplanationShape } from "../answers/explanation.ts";
import { ErrorsShape } from "../answers/own-usage.ts";
import { noSuchKey } from "../refusal.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import { type ExplainAsk, Explanation, readAsk } from "../routes/explain.ts";
import type { OwnScope } from "./own-store.ts";

/** Finds out for an owner, changing nothing; undefined when there is no such key. Throws StoreError. */
export type OwnExplain = (ask: ExplainAsk, own: Store) => Promise<OwnExplanationAnswer | undefined>;

export function ownHelpRoutes(
  { store, explain }: { readonly store: Store; readonly explain?: OwnExplain | undefined },
  scope: OwnScope,
): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/errors",
      id: "listErrors",
      summary: "Every error of the gateway, in order of precedence",
      answers: { 200: ErrorsShape },
      handle: async () => ({
        status: 200,
        body: { items: Object.keys(ERROR_ROWS).map((cause) => wordsOf(cause as Cause)) },
      }),
    }),
    ...(explain ? [explainRoute(explain, store, scope)] : []),
  ];
}

function wordsOf(cause: Cause) {
  const { status, identifier, summary, remedy } = ERROR_ROWS[cause];
  return { cause, status, identifier, means: `${summary}.`, remedy };
}

function explainRoute(explain: OwnExplain, store: Store, scope: OwnScope): ConsoleRoute {
  return route({
    method: "POST",
    path: "/explain",
    id: "explainOwn",
    summary: "What would become of a request of an own key; nothing is sent, held or charged",
    answers: { 200: OwnExplanationShape },
    refusals: { 404: "`unknown_key`." },
    body: Explanation,
    async handle({ body }) {
      // Another account's key is none here, whatever the store would say of it.
      const answer = tagOfId(body.key_id) === scope.tag ? await explain(readAsk(body), store) : undefined;
      if (!answer) throw noSuchKey(body.key_id);
      return { status: 200, body: answer };
    },
  });
}
