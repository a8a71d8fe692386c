/** A whole reply is read if its type may hold JSON: servers label it in several ways, or not at all. */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, assertAnswered, refusalIn, replying, rig, route, upstream } from "./rig.ts";

for (const [type, isRead] of [
  ["application/json; charset=utf-8", true],
  ["text/json", true],
  ["application/vnd.api+json", true],
  ["", true],
  ["text/html", false],
  ["application/jsonl", false],
] as const) {
  test(`a reply of the type "${type}" is ${isRead ? "read" : "upstream_invalid"}`, async (t) => {
    const label = type === "" ? "" : `content-type: ${type}\r\n`;
    const base = await replying(t, `HTTP/1.1 200 OK\r\n${label}content-length: 11\r\n\r\n{"ok":true}`);
    const { dispatcher } = rig(t, [upstream("east", base)]);
    const result = await dispatcher.run(ask([route("east")], { stream: false }));
    if (isRead) assertAnswered(result);
    else assert.equal(refusalIn(result).cause, "upstream_invalid");
  });
}
