/** The answer to a test notice decides what the operator is advised to check. */
import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

/** How a test ended, and what the advice is about. */
const ENDS: readonly (readonly [status: number | undefined, outcome: "taken" | "gone" | "failed", about: RegExp])[] = [
  [204, "taken", /verified the signature/],
  [undefined, "failed", /that this machine can reach it/],
  [301, "failed", /redirects to/],
  [308, "failed", /redirects to/],
  [401, "failed", /one of the secrets/],
  [403, "failed", /one of the secrets/],
  [404, "failed", /the path of the url/],
  [405, "failed", /the path of the url/],
  [410, "gone", /wants no more notices/],
  [500, "failed", /Check the receiver's log/],
  [400, "failed", /compare the clocks/],
];

for (const [status, outcome, about] of ENDS) {
  test(`${status ?? "no answer"}: the advice fits`, async (t) => {
    const { ask } = await startConsole(t, {
      notices: {
        status: () => ({ receiver: "http://127.0.0.1:9/", isLeader: true, stopped: undefined }),
        laneOf: () => undefined,
        test: async () => ({ id: "n_1", outcome, status, ms: 3, reason: "r" }),
        retry: async () => true,
      },
    });
    const { json } = await ask("POST", "/admin/v1/notices/test");
    assert.deepEqual([json.delivered, json.status], [outcome === "taken", status ?? null]);
    assert.match(json.advice, about);
  });
}
