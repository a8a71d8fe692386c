/** The routes of the console's help: the errors with their texts, and the explanation of a request. */
import type { Store } from "../../store/contract.ts";
import { type Cause, ERROR_ROWS } from "../../values/errors.ts";
import { tagOfId } from "../../values/key.ts";
import { type OwnExplanationAnswer, OwnExplanationShape } from "../answers/explanation.ts";
import { ErrorsShape } from "../answers/own-usage.ts";
import { noSuchKey } from "../refusal.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import { type ExplainAsk, Explanation, readAsk } from "../routes/explain.ts";
import type { OwnScope } from "./own-store.ts";

/** Explains a request for an owner without changing anything; undefined if there is no such key. Throws StoreError. */
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
      summary: "List every error of the gateway, in order of precedence",
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
    summary: "Explain what would happen to a request with one of the account's keys; nothing is sent, held or charged",
    answers: { 200: OwnExplanationShape },
    refusals: { 404: "`unknown_key`." },
    body: Explanation,
    async handle({ body }) {
      // A key of another account does not exist here, whatever the store returns for it.
      const answer = tagOfId(body.key_id) === scope.tag ? await explain(readAsk(body), store) : undefined;
      if (!answer) throw noSuchKey(body.key_id);
      return { status: 200, body: answer };
    },
  });
}
