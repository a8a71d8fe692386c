import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import test from "node:test";
import { fileURLToPath } from "node:url";
import type { Clock } from "../../../src/values/time.ts";
import { post, withSimulator } from "./clients.ts";

/** A clock whose tasks run when the test calls `run`; `asked` resolves once a task is waiting. */
function fakeClock(): { clock: Clock; waits: number[]; run(): void; asked(): Promise<void> } {
  const waits: number[] = [];
  let tasks: (() => void)[] = [];
  let onAsk: () => void = () => {};
  const clock: Clock = {
    monotonicMs: () => 0,
    wallMs: () => 0,
    after(ms, task) {
      waits.push(ms);
      tasks.push(task);
      onAsk();
      return () => {
        tasks = tasks.filter((one) => one !== task);
      };
    },
  };
  return {
    clock,
    waits,
    run() {
      const due = tasks;
      tasks = [];
      for (const task of due) task();
    },
    asked: () =>
      tasks.length > 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            onAsk = resolve;
          }),
  };
}

test("headers, the first event and later events come after their delays", async () => {
  const fake = fakeClock();
  await withSimulator(
    async (simulator) => {
      simulator.program({ text: "a", pace: { betweenMs: 3 }, fault: { delayHeadersMs: 50 } });
      let isAnswered = false;
      const answer = post(simulator, "chat", { stream: true }).then((response) => {
        isAnswered = true;
        return response;
      });
      await fake.asked();
      assert.equal(isAnswered, false);
      fake.run();
      const response = await answer;
      let isRead = false;
      const text = response.text().then((all) => {
        isRead = true;
        return all;
      });
      while (!isRead) {
        await Promise.race([fake.asked(), text]);
        fake.run();
      }
      assert.match(await text, /\[DONE\]/);
      assert.deepEqual(fake.waits, [60, 20, 3, 3, 3]);
    },
    { clock: fake.clock, pace: { headersDelayMs: 10, firstDelayMs: 20, betweenMs: 30 } },
  );
});

test("answers are held until they are released, and requests are counted and recorded", async () => {
  const observed: string[] = [];
  await withSimulator(
    async (simulator) => {
      simulator.hold();
      const answers = [post(simulator, "chat"), post(simulator, "responses", {}, { "X-Odd-Case": "1" })];
      await simulator.waitFor(2);
      assert.equal(simulator.count, 2);
      // Programmed after both requests have arrived: an answer that was not held would not use it.
      simulator.program({ text: "decided late" }, { times: 2 });
      simulator.release();
      for (const response of await Promise.all(answers)) assert.match(await response.text(), /decided late/);
      assert.deepEqual(observed.sort(), ["/v1/chat/completions", "/v1/responses"]);
      const seen = simulator.requests.find(({ path }) => path === "/v1/responses");
      assert.ok(seen?.headers.some((name) => name.toLowerCase() === "x-odd-case"));
      assert.deepEqual(seen?.json, { model: "m", input: "hello" });
      assert.equal(await seen?.finished, "complete");
    },
    { onRequest: ({ path }) => observed.push(path) },
  );
});

test("closing the simulator cuts open responses", () =>
  withSimulator(async (simulator) => {
    simulator.program({ fault: { stallAfterEvents: 1 } });
    const response = await post(simulator, "messages", { stream: true });
    await simulator.close();
    await assert.rejects(response.text());
    assert.notEqual(await simulator.requests[0]?.finished, "complete");
  }));

test("the command prints its address and that it is a simulation, and exits on SIGTERM", async () => {
  const file = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));
  const child = spawn(process.execPath, [file, "simulator"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    let said = "";
    for await (const piece of child.stdout) {
      said += String(piece);
      if (said.includes("/v1\n")) break;
    }
    assert.match(said, /SIMULATION/);
    const url = /http:\S+/.exec(said)?.[0];
    const response = await fetch(`${url}/models`);
    assert.equal(response.status, 200);
    await response.body?.cancel();
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    assert.deepEqual(await exited, [0, null]);
  } finally {
    child.kill("SIGKILL");
  }
});

test("the command prints its usage, and refuses wrong arguments without a stack trace", async () => {
  const file = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));
  const said = async (...args: string[]) => {
    const child = spawn(process.execPath, [file, "simulator", ...args], { stdio: ["ignore", "pipe", "pipe"] });
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { out, err, code: code as number };
  };
  for (const flag of ["--help", "-h"]) {
    const { out, err, code } = await said(flag);
    assert.deepEqual([code, err], [0, ""]);
    assert.match(out, /^Usage: tollgate simulator \[options\]\n(?:.*\n)*.*--port <port>/);
  }
  for (const args of [["--port", "http"], ["--port", ""], ["--prot", "1"], ["9000"], ["--port"]]) {
    const { out, err, code } = await said(...args);
    assert.deepEqual([code, out], [2, ""], args.join(" "));
    assert.match(
      err,
      /^error: .+\n(?:\(Did you mean .+\?\)\n)?Usage: tollgate simulator \[options\]\nAdd --help for the options\.\n$/,
    );
    assert.doesNotMatch(err, /^ +at /m);
  }
});
