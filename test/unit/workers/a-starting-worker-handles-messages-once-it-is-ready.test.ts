/** Messages that reach a worker while it opens its store or its listener are handled when that is done. */
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Address } from "../../../src/values/settings.ts";
import { type LifeGateway, WorkerLife } from "../../../src/workers/life.ts";
import type { FromWorker, ToWorker } from "../../../src/workers/messages.ts";

const LISTEN: Address = { kind: "tcp", host: "127.0.0.1", port: 1 };

/** A worker whose store and listener are opened by the test. */
function startingWorker() {
  const prepared = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<Address>();
  const exited = Promise.withResolvers<number>();
  const told: FromWorker[] = [];
  /** The calls of its gateway, in order. */
  const asked: string[] = [];
  const gateway: LifeGateway = {
    configure: ({ generation }) => void asked.push(`configure ${generation}`),
    open: () => opened.promise,
    drain: async () => void asked.push("drain"),
    close: async () => void asked.push("close"),
    figures: async () => ({ metrics: [], upstreams: [] }),
  };
  const life = new WorkerLife({
    prepare: async () => {
      await prepared.promise;
      return gateway;
    },
    tell: async (message) => void told.push(message),
    exit: exited.resolve,
    onRefused: () => assert.fail(),
  });
  life.hear({ kind: "start", newest: { generation: 1 } } as ToWorker);
  return { life, prepared, opened, exited: exited.promise, told, asked };
}

test("a configuration that arrives while the store is opened is in force when the worker reports that it is prepared", async () => {
  const { life, prepared, told, asked } = startingWorker();
  life.hear({ kind: "reload", generation: 2 } as ToWorker);
  assert.deepEqual(asked, []);
  prepared.resolve();
  await turn();
  assert.deepEqual(told, [{ kind: "prepared", generation: 2 }]);
  assert.deepEqual(asked, ["configure 2"]);
});

test("a worker that must drain while it opens its listener drains the clients accepted by then", async () => {
  const { life, prepared, opened, exited, asked } = startingWorker();
  prepared.resolve();
  await turn();
  life.hear({ kind: "open" });
  life.hear({ kind: "stop", how: "drain" });
  await turn();
  assert.deepEqual(asked, [], "clients may connect before the worker knows that it listens");
  opened.resolve(LISTEN);
  assert.equal(await exited, 0);
  assert.deepEqual(asked, ["drain"]);
});
