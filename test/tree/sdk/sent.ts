/** A client's request, translated for a server of another protocol. */
import { openExchange } from "../../../src/convert/bridge.ts";
import type { ClientRequest, Exchange, RouteFacts } from "../../../src/convert/exchange.ts";
import { originOf, sealReasoning } from "../../../src/convert/rules/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { isJsonFault, scanJson } from "../../../src/wire/json.ts";
import { CONTEXT, PERMITTED, translate } from "../../unit/convert/request/translate.ts";
import type { Outcome, Trial } from "./judge.ts";
import { COMPLETE, type Json, SEALED } from "./samples.ts";

export class RequestTrial implements Trial {
  readonly silent = "lost";
  readonly isListKept = false;
  readonly #client: Protocol;
  readonly #route: RouteFacts;
  readonly #seen = new Map<string, Outcome>();

  constructor(client: Protocol, route: RouteFacts) {
    this.#client = client;
    this.#route = route;
  }

  enters(): boolean {
    return true;
  }

  send(built: Json): Outcome {
    const sealed = sealReasoning([SEALED_NATIVE[this.#route.protocol]], originOf(this.#route), CONTEXT);
    const body = { model: "client-model", ...COMPLETE[this.#client](built) };
    const text = JSON.stringify(body).replaceAll(SEALED, sealed);
    const known = this.#seen.get(text) ?? this.#sent(text);
    this.#seen.set(text, known);
    return known;
  }

  #sent(text: string): Outcome {
    const request = requestOf(this.#client, text);
    const exchange = openExchange(request, this.#route, PERMITTED, CONTEXT);
    if (isRefusal(exchange)) return { refused: String(exchange.facts.param), text: "", plan: "", left: [] };
    const strict = openExchange(request, this.#route, { ...PERMITTED, strict: true }, CONTEXT);
    if (isRefusal(strict) !== exchange.request.dropped.length > 0) {
      throw new Error(`x-tollgate-strict and ${exchange.translation} do not agree: ${text}`);
    }
    const encoded = translate(this.#client, request.json, this.#route);
    const plan = isRefusal(encoded) ? "" : planText(encoded.plan);
    return { refused: undefined, text: Buffer.from(exchange.request.body).toString(), plan, left: namesOf(exchange) };
  }
}

/** A body as the accept stage passes it on. */
export function requestOf(protocol: Protocol, text: string): ClientRequest {
  const body = Buffer.from(text);
  const scan = scanJson(body);
  if (isJsonFault(scan)) throw new Error(`no JSON: ${text}`);
  const json: Json = JSON.parse(text);
  return { protocol, body, json, scan, model: String(json.model), stream: json.stream === true };
}

/** The names in the header for the client. */
function namesOf({ translation = "" }: Pick<Exchange, "translation">): readonly string[] {
  return translation.split(/[;,\s]+|\w+=/).filter((name) => !["", "exact", "lossy"].includes(name));
}

type Plan = { readonly echo: Json; readonly tools: ReadonlyMap<string, unknown> };

/**
 * The effect of a request on the translation of its reply. What the reply only repeats of the request does not count.
 */
function planText({ echo: _, tools, ...plan }: Plan): string {
  return JSON.stringify([plan, [...tools]]);
}

const SEALED_NATIVE: Readonly<Record<Protocol, unknown>> = {
  chat: "thought",
  messages: { type: "thinking", thinking: "thought", signature: "signed" },
  responses: { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "secret" },
};
