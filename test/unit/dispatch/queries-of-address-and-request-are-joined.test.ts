/** An address may have a query of its own (Azure's `api-version`), and so may a question about a stored response. */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, assertAnswered, jsonReply, rawServer, rig, route, upstream } from "./rig.ts";

for (const [own, asked, expected] of [
  ["", undefined, ""],
  ["", "limit=2", "?limit=2"],
  ["?api-version=1", undefined, "?api-version=1"],
  ["?api-version=1", "", "?api-version=1"],
  ["?api-version=1", "limit=2", "?api-version=1&limit=2"],
] as const) {
  test(`the query "${own}" of an address and "${asked ?? ""}" of a request are sent as "${expected}"`, async (t) => {
    const lines: string[] = [];
    const base = await rawServer(t, ({ socket, text }) => {
      lines.push(text.split("\r\n", 1)[0] as string);
      socket.write(jsonReply());
    });
    const { dispatcher } = rig(t, [upstream("east", `${base}/${own}`)]);
    const request = { stream: false, pathSuffix: "/items", query: asked };
    assertAnswered(await dispatcher.run(ask([route("east")], request)));
    assert.deepEqual(lines, [`POST /v1/chat/completions/items${expected} HTTP/1.1`]);
  });
}
