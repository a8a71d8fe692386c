/** Shared by the tests of references: contexts of two accounts with real seals, and requests with references. */
import type { ConvertContext } from "../../../../src/convert/exchange.ts";
import { withItemsInPlace } from "../../../../src/convert/responses/references/opening.ts";
import { createSealing } from "../../../../src/request/sealing.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { Secret } from "../../../../src/values/secret.ts";

export type Item = Readonly<Record<string, unknown>>;

const sealing = createSealing([new Secret("a-key-of-the-gateway-for-its-tests")]);

/** The context of an account. What one account seals, another cannot open. */
export function contextOf(account: string, sealed = sealing): ConvertContext {
  return {
    nowS: 1_795_000_000,
    randomId: (length) => "0".repeat(length),
    seal: (content, binding) => sealed.seal(content, `${account}:${binding}`),
    digest: (text) => sealed.digest(`${account}:${text}`),
    sealAlike: (content, binding) => sealed.sealAlike(content, `${account}:${binding}`),
    open: (envelope, binding) => sealed.open(envelope, `${account}:${binding}`),
  };
}

export const OWN = contextOf("own");

export const MESSAGE: Item = {
  id: "msg_1",
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text: "R\u00f6\u00f6f \u{1f3e0} found.", annotations: [], logprobs: [] }],
};
export const CALL: Item = {
  id: "fc_1",
  type: "function_call",
  status: "completed",
  call_id: "call_1",
  name: "look",
  arguments: '{"part":"roof"}',
};

export const refer = (id: unknown): Item => ({ type: "item_reference", id });

/** The input of a request after its references are resolved, or the reason why they are not. */
export async function placed(input: readonly unknown[], context = OWN, bytesMax = 1_000_000): Promise<unknown> {
  const json = { model: "m", input };
  const body = Buffer.from(JSON.stringify(json));
  const whole = await withItemsInPlace({ body, json }, context, { bytesMax });
  if (whole === "too_large" || isRefusal(whole)) return whole;
  return whole.body === body ? "as it is" : JSON.parse(Buffer.from(whole.body).toString()).input;
}
