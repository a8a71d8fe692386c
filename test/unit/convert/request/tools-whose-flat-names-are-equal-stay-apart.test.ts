/** Rule 34: tools of several namespaces may have one flat name. Each gets a name of its own, and calls find their way back. */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { routeTo, translate } from "./translate.ts";

const tool = (name: string) => ({ type: "function", name, description: name, parameters: { type: "object" } });

test("three tools with one flat name get three names", () => {
  const tools = [
    tool("x__y__z"),
    { type: "namespace", name: "x", tools: [tool("y__z")] },
    { type: "namespace", name: "x__y", tools: [tool("z")] },
  ];
  const encoded = translate("responses", { model: "m", input: "q", tools }, routeTo("chat"));
  assert.ok(!isRefusal(encoded));
  const sent: { tools: { function: { name: string } }[] } = JSON.parse(Buffer.from(encoded.body).toString());
  const names = sent.tools.map((one) => one.function.name);
  assert.equal(new Set(names).size, 3);
  assert.deepEqual(
    names.map((name) => encoded.plan.tools.get(name)).map((one) => [one?.namespace, one?.name]),
    [
      [undefined, "x__y__z"],
      ["x", "y__z"],
      ["x__y", "z"],
    ],
  );
});
