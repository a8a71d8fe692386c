/** How a worker ends that cannot continue, or cannot close its parts: the parent is notified, and no process is left behind. */
import assert from "node:assert/strict";
import test from "node:test";
import { type LifeGateway, WorkerLife } from "../../../src/workers/life.ts";
import type { FromWorker, ToWorker } from "../../../src/workers/messages.ts";

/** The messages of a worker until it ends, and its exit code. */
async function endOf(
  gateway: Partial<LifeGateway>,
  opens: boolean,
  end = (life: WorkerLife): void => life.stop("drain"),
): Promise<{ told: FromWorker[]; refused: unknown[]; code: number }> {
  const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
  const serving = Promise.withResolvers<void>();
  const prepared = Promise.withResolvers<void>();
  const told: FromWorker[] = [];
  const refused: unknown[] = [];
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
    onRefused: (error) => void refused.push(error),
  });
  life.hear({ kind: "start", newest: { generation: 1 } } as ToWorker);
  await prepared.promise;
  if (opens) {
    life.hear({ kind: "open" });
    await serving.promise;
  }
  end(life);
  return { told, refused, code: await exited };
}

const fails = async (): Promise<never> => {
  throw new Error("EIO: a part could not be closed");
};

for (const [name, gateway, opens] of [
  ["a drain", { drain: fails }, true],
  ["closing before it serves", { close: fails }, false],
  ["reading its last figures", { figures: fails }, true],
] as const) {
  test(`a worker reports that ${name} failed and exits with 1`, async () => {
    const { told, code } = await endOf(gateway, opens);
    assert.equal(code, 1);
    assert.deepEqual(told.at(-1), { kind: "failed", reason: "EIO: a part could not be closed" });
  });
}

test("a worker with a defect while it serves drains its requests and exits with 1", async () => {
  const asked: string[] = [];
  const drain = async () => void asked.push("drain");
  const { code } = await endOf({ drain }, true, (life) => life.defect(new Error("a defect")));
  assert.deepEqual([asked, code], [["drain"], 1]);
});

test("a worker that cannot apply a configuration reports it, does not continue with the old one, and exits with 1", async () => {
  const fault = new Error("no such file");
  const asked: string[] = [];
  const configure = (): never => {
    throw fault;
  };
  const drain = async () => void asked.push("drain");
  const reload = { kind: "reload", generation: 2 } as ToWorker;
  const { told, refused, code } = await endOf({ configure, drain }, true, (life) => life.hear(reload));
  assert.deepEqual([refused, asked, code], [[fault], ["drain"], 1]);
  assert.ok(!told.some(({ kind }) => kind === "configured"));
});

test("a worker exits with 0 after a successful drain", async () => {
  const { told, code } = await endOf({}, true);
  assert.equal(code, 0);
  assert.equal(told.at(-1)?.kind, "metrics");
});
