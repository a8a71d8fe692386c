/** A configuration that is good and most likely not meant: `tollgate check` says so. */
import assert from "node:assert/strict";
import test from "node:test";
import { formatProblem, loadConfig, warningsOf } from "../../../src/config/config.ts";

function warned(baseUrls: readonly string[]): readonly string[] {
  const upstreams = baseUrls.map((url, n) => `u${n}: {protocol: messages, base_url: "${url}"}`).join(", ");
  const text = `
upstreams: {${upstreams}}
plans: {free: {}}
models: {m: {plans: [free], price: {input: "0", output: "0"}, context_tokens: 9000, max_output_tokens: 90, routes: [{upstream: u0}]}}
groups: {g: {kind: pay_per_use, models: [m]}}
`;
  const loaded = loadConfig({ text, env: {} });
  if ("problems" in loaded) assert.fail(loaded.problems.map(formatProblem).join("\n"));
  return warningsOf(loaded.settings);
}

test("a base_url with the endpoint in it is said to be asked for it twice", () => {
  assert.deepEqual(
    warned(["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/messages/", "http://127.0.0.1:9/responses"]),
    [
      "upstreams.u1.base_url has the endpoint in it: requests will go to http://127.0.0.1:9/v1/messages/messages. Make it http://127.0.0.1:9/v1",
      "upstreams.u2.base_url has the endpoint in it: requests will go to http://127.0.0.1:9/responses/messages. Make it http://127.0.0.1:9",
    ],
  );
  assert.deepEqual(warned(["http://127.0.0.1:9/v1", "http://127.0.0.1:9/some-responses", "http://127.0.0.1:9"]), []);
});
