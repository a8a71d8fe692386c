/**
 * The admin application is loaded for the first request: if loading fails, that is a defect, and must not be a way to
 * fill the log.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { AGAIN_MS } from "../../../src/console/listener.ts";
import { type Clock, systemClock } from "../../../src/values/time.ts";
import { startConsole } from "./running-console.ts";

test("an application that cannot be loaded is tried once a second, however many requests come, and logged once", async (t) => {
  const again: (() => void)[] = [];
  const after: Clock["after"] = (ms, task) => {
    if (ms !== AGAIN_MS) return systemClock.after(ms, task);
    again.push(task);
    return () => {};
  };
  let isBroken = true;
  const refused: string[] = [];
  const pages = {
    get sessions(): never {
      throw new Error(isBroken ? "no descriptor is free" : "the second try failed, too");
    },
  };
  const console = await startConsole(t, {
    clock: { ...systemClock, after },
    pages: pages as never,
    onAccessRefused: (reason) => void refused.push(reason),
  });
  const ask = async () => (await console.ask("GET", "/admin/v1/accounts", undefined, { authorization: "" })).json;
  for (let i = 0; i < 3; i++) assert.equal((await ask()).error.code, "internal");
  assert.equal((await console.ask("GET", "/healthz")).status, 200);
  const said = () => console.log.map(({ event, stack }) => [event, /descriptor|second/.exec(String(stack))?.[0]]);
  assert.deepEqual(said(), [["console_defect", "descriptor"]]);
  isBroken = false;
  for (const task of again.splice(0)) task();
  await ask();
  assert.deepEqual(said().slice(1), [["console_defect", "second"]]);
  assert.deepEqual(refused, [], "no request is refused for a missing token");
});
