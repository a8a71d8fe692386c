/**
 * `POST /admin/v1/explain`: explains what would happen to a request with any key. The caller provides the explanation.
 */
import type { Protocol } from "../../values/protocol.ts";
import { type ExplanationAnswer, ExplanationShape, type OwnExplanationAnswer } from "../answers/explanation.ts";
import { noSuchKey } from "../refusal.ts";

export type { ExplanationAnswer, OwnExplanationAnswer };

import { closed, KeyId, type Static, Type } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

export const Explanation = Type.Object(
  {
    key_id: KeyId,
    model: Type.String({
      minLength: 1,
      maxLength: 512,
      description: "the name of a model, as a client would send it",
      "x-remedy": "Use the model name that the client sends.",
    }),
    protocol: Type.String({
      pattern: "^(chat|messages|responses)$",
      description: "one of chat, messages, responses",
      "x-remedy": "Use the protocol that the client speaks.",
    }),
    max_tokens: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: "a whole number of output tokens",
        "x-remedy": "Leave it out for the model's default.",
      }),
    ),
    input_bytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2 ** 40,
        description: "a whole number of bytes",
        "x-remedy": "Leave it out for a short body.",
      }),
    ),
  },
  closed,
);

/** A request to explain. */
export interface ExplainAsk {
  readonly keyId: string;
  readonly model: string;
  readonly protocol: Protocol;
  /** The client's output limit; undefined: the model's default. */
  readonly maxTokens: number | undefined;
  /** The size of the body; undefined: a short one. */
  readonly inputBytes: number | undefined;
}

export interface Explainer {
  /** Explains without changing anything; undefined if there is no such key. Throws StoreError. */
  readonly explain?: (ask: ExplainAsk) => Promise<ExplanationAnswer | undefined>;
}

export function explainRoutes({ explain }: ConsoleParts & Explainer): readonly ConsoleRoute[] {
  if (!explain) return [];
  return [
    route({
      method: "POST",
      path: "/explain",
      id: "explain",
      summary: "Explain what would happen to a request; nothing is sent, held or charged",
      answers: { 200: ExplanationShape },
      refusals: { 404: "`unknown_key`." },
      body: Explanation,
      async handle({ body }) {
        const answer = await explain(readAsk(body));
        if (!answer) throw noSuchKey(body.key_id);
        return { status: 200, body: answer };
      },
    }),
  ];
}

export function readAsk(body: Static<typeof Explanation>): ExplainAsk {
  return {
    keyId: body.key_id,
    model: body.model,
    protocol: body.protocol as Protocol,
    maxTokens: body.max_tokens,
    inputBytes: body.input_bytes,
  };
}
