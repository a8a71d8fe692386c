/** What a worker is told while it opens its store, or begins to listen, is done as if it had come a moment later. */
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Address } from "../../../src/values/settings.ts";
import { type LifeGateway, WorkerLife } from "../../../src/workers/life.ts";
import type { FromWorker, ToWorker } from "../../../src/workers/messages.ts";

const LISTEN: Address = { kind: "tcp", host: "127.0.0.1", port: 1 };

/** A worker whose store and listener are open when the test says so. */
function startingWorker() {
  const prepared = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<Address>();
  const exited = Promise.withResolvers<number>();
  const told: FromWorker[] = [];
  /** What its gateway was asked for, in order. */
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

test("a configuration that comes while the store is being opened is in force once it says that it is prepared", async () => {
  const { life, prepared, told, asked } = startingWorker();
  life.hear({ kind: "reload", generation: 2 } as ToWorker);
  assert.deepEqual(asked, []);
  prepared.resolve();
  await turn();
  assert.deepEqual(told, [{ kind: "prepared", generation: 2 }]);
  assert.deepEqual(asked, ["configure 2"]);
});

test("told to drain while it begins to listen, it drains those whom it has let in by then", async () => {
  const { life, prepared, opened, exited, asked } = startingWorker();
  prepared.resolve();
  await turn();
  life.hear({ kind: "open" });
  life.hear({ kind: "stop", how: "drain" });
  await turn();
  assert.deepEqual(asked, [], "clients may come before it knows that it listens");
  opened.resolve(LISTEN);
  assert.equal(await exited, 0);
  assert.deepEqual(asked, ["drain"]);
});
