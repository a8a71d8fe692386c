/** docs/failure-model.md row C1: many requests for a name that resolves slowly leave the resolver to other names. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { PerformanceObserver } from "node:perf_hooks";
import { test } from "node:test";
import { ask, assertAnswered, listening, rig, route, upstream } from "./rig.ts";

test("eight connections that are opened at once need one lookup", async (t) => {
  // The entries that Node records for lookups, each after its answer.
  const noted: PerformanceEntry[] = [];
  const looks = new PerformanceObserver((list) => void noted.push(...list.getEntries()));
  looks.observe({ entryTypes: ["dns"] });
  t.after(() => looks.disconnect());
  const sockets = new Set<unknown>();
  const waiting: (() => void)[] = [];
  const server = createServer((request, response) => {
    sockets.add(request.socket);
    request.resume();
    waiting.push(() => response.setHeader("content-type", "application/json").end("{}"));
    if (waiting.length === 8) for (const answer of waiting) answer();
  });
  const { dispatcher } = rig(t, [upstream("east", await listening(t, server, "http", "localhost"))]);
  const results = await Promise.all(
    Array.from({ length: 8 }, () => dispatcher.run(ask([route("east")], { stream: false }))),
  );
  for (const result of results) assertAnswered(result);
  assert.equal(sockets.size, 8);
  assert.equal([...noted, ...looks.takeRecords()].length, 1);
});
