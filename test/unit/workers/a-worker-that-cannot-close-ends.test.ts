import assert from "node:assert/strict";
import test from "node:test";
import { type LifeGateway, WorkerLife } from "../../../src/workers/life.ts";
import type { FromWorker, ToWorker } from "../../../src/workers/messages.ts";

/** What a worker says on its way to the end, and with which code it exits. */
async function endOf(gateway: Partial<LifeGateway>, opens: boolean): Promise<{ told: FromWorker[]; code: number }> {
  const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
  const serving = Promise.withResolvers<void>();
  const prepared = Promise.withResolvers<void>();
  const told: FromWorker[] = [];
  const life = new WorkerLife({
    prepare: async () => ({
      configure() {},
      open: async () => ({ kind: "tcp", host: "127.0.0.1", port: 1 }),
      drain: async () => {},
      close: async () => {},
      figures: async () => ({ metrics: [], upstreams: [] }),
      ...gateway,
    }),
    async tell(message) {
      told.push(message);
      if (message.kind === "prepared") prepared.resolve();
      if (message.kind === "serving") serving.resolve();
    },
    exit,
    onRefused: () => assert.fail(),
  });
  life.hear({ kind: "start", newest: { generation: 1 } } as ToWorker);
  await prepared.promise;
  if (opens) {
    life.hear({ kind: "open" });
    await serving.promise;
  }
  life.stop("drain");
  return { told, code: await exited };
}

const fails = async (): Promise<never> => {
  throw new Error("EIO: a part could not be closed");
};

for (const [name, gateway, opens] of [
  ["a drain", { drain: fails }, true],
  ["a close before it serves", { close: fails }, false],
  ["its last figures", { figures: fails }, true],
] as const) {
  test(`${name} that fails is told, and the worker ends with 1`, async () => {
    const { told, code } = await endOf(gateway, opens);
    assert.equal(code, 1);
    assert.deepEqual(told.at(-1), { kind: "failed", reason: "EIO: a part could not be closed" });
  });
}

test("a drain that succeeds ends it with 0", async () => {
  const { told, code } = await endOf({}, true);
  assert.equal(code, 0);
  assert.equal(told.at(-1)?.kind, "metrics");
});
