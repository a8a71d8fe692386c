/** ARCHITECTURE.md promise 11: a refused body that could be read is reported with the model as typed and the key's group. */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, type Fields, PROTOCOL_LIST } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere();
  account = await here.account();
});
after(() => here.close());

const TYPED = 'Typed "as it was"\n';
const CASES: readonly (readonly [cause: string, fields: Fields])[] = [
  ["wrong_type", { stream: "yes" }],
  ["missing_field", { messages: undefined, input: undefined }],
  ["unsupported_parameter", { Temperature: 1 }],
  ["wrong_type", { top_k: 1, service_tier: 5 }],
];

async function errorOf(reply: Response): Promise<{ cause: string; message: string }> {
  const { error } = (await reply.json()) as { error: { cause: string; message: string } };
  return error;
}

for (const protocol of PROTOCOL_LIST) {
  for (const [cause, fields] of CASES) {
    test(`${protocol}: ${cause} of ${JSON.stringify(fields)}`, async () => {
      const reply = await ask(here, protocol, account.key, { ...fields, model: TYPED });
      assert.equal(reply.status, 400);
      const error = await errorOf(reply);
      assert.equal(error.cause, cause);
      assert.ok(error.message.endsWith(' Model: "Typed "as it was"\\u000a". Group: "money".'), error.message);
    });
  }

  test(`${protocol}: a body without a model names neither`, async () => {
    const reply = await ask(here, protocol, account.key, { model: undefined });
    assert.doesNotMatch((await errorOf(reply)).message, /Model:|Group:/);
  });
}

test("a token count names them, too", async () => {
  const path = "/v1/messages/count_tokens";
  const reply = await ask(here, "messages", account.key, { model: "messages-1", messages: "hi" }, { path });
  assert.match((await errorOf(reply)).message, / Model: "messages-1"\. Group: "money"\.$/);
});

test("a token count of a body that refers to stored data names them, too", async () => {
  const path = "/v1/responses/input_tokens";
  const reply = await ask(here, "responses", account.key, { previous_response_id: "resp_1" }, { path });
  const error = await errorOf(reply);
  assert.equal(error.cause, "unsupported_parameter");
  assert.match(error.message, / Model: "responses-1"\. Group: "money"\.$/);
});
