/**
 * ARCHITECTURE.md promise 12 behind a front: deploy/drain.sh takes one of two processes over one Redis out of service,
 * in the middle of 200 streams and of steady traffic, and puts it back (docs/failure-model.md row A6), while both
 * reload their configuration every second (row G1). Every answer is a 200, no stream is cut, and the charges are exact.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { startEnvoy } from "../../../rig/envoy.ts";
import { type GatewayProcess, spawnGateway } from "../../../rig/gateway.ts";
import { startNginx } from "../../../rig/nginx.ts";
import { freePorts } from "../../../rig/ports.ts";
import { startRedis } from "../../../rig/redis.ts";
import { bodyOf } from "../../protocol/whole/asking.ts";
import { adminGet, keyOf } from "./admin.ts";
import {
  behindFront,
  behindOf,
  CHAT_END,
  chatFrame,
  chatStream,
  type Front,
  type HandRequest,
  startHandUpstream,
} from "./fronts.ts";

const SCRIPT = fileURLToPath(new URL("../../../../deploy/drain.sh", import.meta.url));
const STREAMS = 200;
const STREAMS_AT_ONCE = 20;
/** Clients that send one request after another, each over a new connection. */
const CLIENTS = 3;
/** Often enough for each step to meet a reload; G1 has a separate test that does little else. */
const RELOAD_EVERY_MS = 1_000;
/** Requests that must have passed after each step before the next one begins. */
const REQUESTS_PER_STEP = 30;
/** 10 tokens in at 1 USD and 5 out at 10 USD per million. */
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const CHARGE_NANO_USD = 60_000n;
const WHOLE = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "chat-1",
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: USAGE,
};
const USAGE_FRAME = `data: ${JSON.stringify({ ...WHOLE, object: "chat.completion.chunk", choices: [] })}\n\n`;

interface DrainableFront extends Front {
  /** Arguments and environment of deploy/drain.sh that take this process out, and that put it back. */
  out(gateway: GatewayProcess): { args: string[]; env: Record<string, string> };
  back(gateway: GatewayProcess): { args: string[]; env: Record<string, string> };
}

async function drainableNginx(gateways: readonly GatewayProcess[]): Promise<DrainableFront> {
  const server = (gateway: GatewayProcess) => new URL(gateway.url).host;
  const nginx = await startNginx({ servers: gateways.map(server) });
  const env = { NGINX_CMD: nginx.command.join(" ") };
  return {
    ...nginx,
    out: (gateway) => ({ args: ["nginx", nginx.file, server(gateway), `${gateway.child.pid}`], env }),
    back: (gateway) => ({ args: ["nginx-back", nginx.file, server(gateway)], env }),
  };
}

async function drainableEnvoy(gateways: readonly GatewayProcess[]): Promise<DrainableFront> {
  const envoy = await startEnvoy({ endpoints: gateways.map(behindOf) });
  return {
    ...envoy,
    out: (gateway) => ({ args: ["envoy", envoy.adminUrl, `${gateway.child.pid}`], env: { FRONT_WAIT_S: "1" } }),
    back: () => ({ args: ["envoy-back", envoy.adminUrl], env: {} }),
  };
}

for (const [name, startFront] of [
  ["nginx", drainableNginx],
  ["Envoy", drainableEnvoy],
] as const) {
  test(name, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "tollgate-fronts-"));
    const upstream = await startHandUpstream(WHOLE);
    const redis = await startRedis();
    const started: GatewayProcess[] = [];
    const serving = new Set<GatewayProcess>();
    const ports = await freePorts(4);
    const [portA, portB, adminA, adminB] = ports as [number, number, number, number];
    const spawnAt = async (port: number, admin: number, journal: string): Promise<GatewayProcess> => {
      const config = behindFront({
        listen: `127.0.0.1:${port}`,
        admin: `127.0.0.1:${admin}`,
        // Enough time for nginx to start its new workers, even on a busy machine.
        drain: { lame_duck: "3s", deadline: "120s" },
        groups: { money: { limits: { concurrency: 1000 } } },
      });
      const places = { upstreamUrl: upstream.url, dir: join(dir, journal), store: redis.url };
      const gateway = await spawnGateway(config(places));
      started.push(gateway);
      serving.add(gateway);
      return gateway;
    };
    let front: DrainableFront | undefined;
    const traffic: Traffic[] = [];
    const reloading = setInterval(() => {
      for (const { child } of serving) child.kill("SIGHUP");
    }, RELOAD_EVERY_MS);
    try {
      const first = await spawnAt(portA, adminA, "a");
      const second = await spawnAt(portB, adminB, "b");
      front = await startFront([first, second]);
      const key = await keyOf(first, "drained");
      const { readers, requests } = await openStreams(front, key, upstream.next);
      for (const gateway of [first, second]) assert.ok((await inFlight(gateway)) > 0, "both gateways have streams");
      const clients = Array.from({ length: CLIENTS }, () => new Traffic(front as Front, key));
      traffic.push(...clients);
      await passed(clients);

      const drained = run(front.out(first));
      await refused(portA);
      assert.equal(drained.child.exitCode, null, "the drain waits for the streams");
      await passed(clients);
      // A process in its last moments has no signal handler any more, and a signal would end it with another status.
      serving.delete(first);
      for (const stream of requests) {
        stream.send(chatFrame("", "stop") + USAGE_FRAME + CHAT_END);
        stream.end();
      }
      for (const reader of readers) {
        const { text, cut } = await reader.end();
        assert.ok(!cut && text.endsWith(CHAT_END), "a stream was cut");
      }
      await drained.done;
      assert.equal(await first.stop("SIGCONT"), 0);
      await passed(clients);

      const again = await spawnAt(portA, adminA, "a");
      await run(front.back(again)).done;
      const before = await served(again);
      while ((await served(again)) === before) await passed(clients);
      const statuses = (await Promise.all(clients.map((client) => client.stop()))).flat();
      assert.deepEqual(
        clients.flatMap(({ others }) => others),
        [],
      );
      t.diagnostic(`${statuses.length} requests and ${STREAMS} streams, all 200`);
      await assertBilled(second, statuses.length + STREAMS);
    } finally {
      clearInterval(reloading);
      await Promise.all(traffic.map((client) => client.stop()));
      await front?.stop();
      for (const gateway of started) await gateway.stop("SIGKILL");
      await redis.stop();
      await upstream.close();
      rmSync(dir, { recursive: true, force: true });
    }
  });
}

async function openStreams(front: Front, key: string, next: () => Promise<HandRequest>) {
  const requests: HandRequest[] = [];
  const readers: Awaited<ReturnType<typeof chatStream>>[] = [];
  // A few at a time: this test is about the drain, and a busy gateway may refuse a burst of 200.
  while (readers.length < STREAMS) {
    const opening = Array.from({ length: STREAMS_AT_ONCE }, () => openStream(front, key));
    // A refused request never arrives at the model server: it fails here instead of being awaited.
    const refused = Promise.all(opening).then(() => new Promise<never>(() => {}));
    for (let i = 0; i < STREAMS_AT_ONCE; i++) {
      const arrived = await Promise.race([next(), refused]);
      arrived.send(chatFrame("first."));
      requests.push(arrived);
    }
    readers.push(...(await Promise.all(opening)));
  }
  for (const reader of readers) await reader.until("first.");
  return { readers, requests };
}

async function openStream(front: Front, key: string) {
  const reader = await chatStream(front.url, key);
  assert.equal(reader.status, 200);
  return reader;
}

/** Emits every answer that any client got. */
const ANSWERS = new EventEmitter();

/** A client that requests one whole answer after another until it is stopped. */
class Traffic {
  readonly statuses: number[] = [];
  /** Answers other than 200, to be read when a test fails. */
  readonly others: string[] = [];
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(front: Front, key: string) {
    this.#running = this.#run(front, key);
  }

  async #run(front: Front, key: string): Promise<void> {
    while (!this.#stopped) {
      const { status, text } = await askOnce(front, key);
      this.statuses.push(status);
      if (status !== 200) this.others.push(`${status} ${text}`);
      ANSWERS.emit("answer");
    }
  }

  async stop(): Promise<number[]> {
    this.#stopped = true;
    await this.#running;
    return this.statuses;
  }
}

/** One request over a new connection. The status is 0 if there was no answer or a truncated one. */
function askOnce(front: Front, key: string): Promise<{ status: number; text: string }> {
  const { promise, resolve } = Promise.withResolvers<{ status: number; text: string }>();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  request(`${front.url}/v1/chat/completions`, { method: "POST", headers, agent: false }, (res) => {
    let text = "";
    res.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    res.once("close", () => resolve({ status: res.complete ? (res.statusCode ?? 0) : 0, text }));
  })
    .on("error", (error) => resolve({ status: 0, text: String(error) }))
    .end(JSON.stringify(bodyOf("chat")));
  return promise;
}

/** Resolves when the clients have had this many more answers. */
async function passed(clients: readonly Traffic[]): Promise<void> {
  const sum = () => clients.reduce((all, { statuses }) => all + statuses.length, 0);
  const until = sum() + REQUESTS_PER_STEP;
  while (sum() < until) await once(ANSWERS, "answer");
}

/** Resolves when nothing listens on the port any more: the lame duck phase is over. */
async function refused(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const accepted = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (!accepted) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function run({ args, env }: { args: string[]; env: Record<string, string> }): {
  child: ChildProcess;
  done: Promise<void>;
} {
  const child = spawn(SCRIPT, args, {
    env: { ...process.env, WAIT_S: "120", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (data: Buffer) => {
    said += data;
  });
  const done = once(child, "exit").then(([code]) => assert.equal(code, 0, said));
  return { child, done };
}

/** The sum of a metric's series that contain `part`. */
async function metric(gateway: GatewayProcess, name: string, part = ""): Promise<number> {
  const page = await (
    await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: "Bearer test-admin-token" } })
  ).text();
  const lines = page.split("\n").filter((line) => line.startsWith(`${name}{`) && line.includes(part));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

const inFlight = (gateway: GatewayProcess) => metric(gateway, "tollgate_in_flight", "chat");
const served = (gateway: GatewayProcess) => metric(gateway, "tollgate_requests_total", 'status="200"');

/** Asserts that every request is in the ledger once, at its price, and that no hold is left. */
async function assertBilled(gateway: GatewayProcess, requests: number): Promise<void> {
  const account = (await adminGet(gateway, "/accounts/drained")) as { spent_usd: string; held_usd: string };
  const nano = CHARGE_NANO_USD * BigInt(requests);
  const usd = (text: string) => BigInt(Math.round(Number(text) * 1e9));
  assert.equal(usd(account.spent_usd), nano);
  assert.equal(usd(account.held_usd), 0n);
}
