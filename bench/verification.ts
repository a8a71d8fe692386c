/**
 * `node bench/verification.ts [--lines N] [--keys N] [--form single|cluster|embedded] [--commands A,B,...]`: how long the
 * commands that walk a ledger take on an account of N lines, in a database with N other keys, and what they cost requests
 * meanwhile: the longest time that they block the store and the gateway's event loop, and how long concurrent admissions take.
 * How to read the figures: docs/benchmarks.md.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Store } from "../src/store/contract.ts";
import { slotOf } from "../src/store/redis/connection/slots.ts";
import { tokenSumsOf } from "../src/store/sums/token-sums.ts";
import { nanoUsd } from "../src/values/money.ts";
import { recompute, usageOfMemo } from "../src/values/recompute.ts";
import { newRequestId } from "../src/values/request-id.ts";
import { ask } from "../test/e2e/protocol/whole/asking.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../test/rig/gateway.ts";
import { programOptions } from "../test/rig/program-options.ts";
import { startRedis, startRedisCluster, type TestRedis } from "../test/rig/redis.ts";
import { admitAsk, makeAccount, settleAsk } from "../test/unit/store/asks.ts";
import { machineFacts } from "./machine.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));

const COMMANDS: Readonly<Record<string, (account: string) => readonly string[]>> = {
  verify: (account) => ["ledger", "verify", "--account", account],
  "verify-all": () => ["ledger", "verify"],
  export: (account) => ["ledger", "show", "--account", account, "--format", "csv"],
  usage: (account) => ["usage", "--account", account, "--by", "model"],
};
/** Settlements under way while the account is filled. */
const FILLING = 64;
/** Milliseconds between two admissions, each with its settlement, of another account on the same server. */
const PROBE_EVERY_MS = 5;

const { values } = programOptions({
  options: {
    lines: { type: "string", default: "15000" },
    keys: { type: "string", default: "0" },
    form: { type: "string", default: "single" },
    commands: { type: "string", default: Object.keys(COMMANDS).join(",") },
  },
});

interface Form {
  readonly url: string | undefined;
  /** Servers of which the longest command is looked up. */
  readonly servers: readonly TestRedis[];
  stop(): Promise<void>;
}

const ARGS = ["--maxmemory-policy", "noeviction", "--slowlog-log-slower-than", "200", "--slowlog-max-len", "4096"];

async function openForm(form: string): Promise<Form> {
  if (form === "embedded") return { url: undefined, servers: [], stop: async () => {} };
  if (form === "cluster") {
    const cluster = await startRedisCluster([...ARGS, "--appendonly", "yes"]);
    const url = `redis-cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
    return { url, servers: cluster.servers, stop: () => cluster.stop() };
  }
  const redis = await startRedis({ args: [...ARGS, "--appendonly", "yes"] });
  return { url: redis.url, servers: [redis], stop: () => redis.stop() };
}

/** Sends many commands at once and waits for as many replies. */
async function pipelined(redis: TestRedis, count: number, commandOf: (at: number) => readonly string[]): Promise<void> {
  const socket = connect(redis.port, "127.0.0.1");
  await once(socket, "connect");
  let replies = 0;
  let sent = 0;
  socket.on("data", (chunk: Buffer) => {
    for (const byte of chunk) if (byte === 10) replies += 1;
  });
  while (sent < count) {
    const batch: string[] = [];
    for (let at = 0; at < 10_000 && sent < count; at++, sent++) {
      const words = commandOf(sent);
      batch.push(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
    }
    socket.write(batch.join(""));
    while (replies < sent) await once(socket, "data");
  }
  socket.destroy();
}

/** Other people's keys in the same database: in a cluster on every server. */
async function addKeys(servers: readonly TestRedis[], count: number): Promise<void> {
  const share = Math.ceil(count / servers.length);
  for (const [index, server] of servers.entries()) {
    const from = (index * 16_384) / servers.length;
    const to = ((index + 1) * 16_384) / servers.length;
    let tag = 0;
    const isHere = () => slotOf(`{o:${tag}}`) >= from && slotOf(`{o:${tag}}`) < to;
    const tags: number[] = [];
    for (; tags.length < 1_000; tag++) if (servers.length === 1 || isHere()) tags.push(tag);
    await pipelined(server, share, (at) => ["SET", `{o:${tags[at % tags.length]}}:${at}`, "x"]);
  }
}

/** Adds charges like real ones until the ledger has this many lines. */
async function fill(here: GatewayHere, account: TestAccount, lines: number): Promise<void> {
  const reply = await ask(here, "chat", account.key, {});
  await reply.text();
  const [, line] = await untilLines(here.store, account, 2);
  const memo = line?.memo ?? "";
  const tokens = usageOfMemo(memo);
  const amount = recompute(memo)?.owed;
  if (!line || !tokens || amount === undefined) throw new Error("no charge to copy");
  const said = JSON.parse(memo) as Record<"cost" | "upstream" | "upstream_model", string>;
  const bill = { requests: 1, tokens: tokenSumsOf(tokens), absorbed: nanoUsd(0n), charged: true };
  const { upstream } = said;
  const costs = [{ ...bill, upstream, model: said.upstream_model, cost: nanoUsd(BigInt(said.cost)) }];
  const now = Date.now();
  let left = lines - 2;
  const one = async () => {
    while (left-- > 0) {
      const requestId = newRequestId(now, randomBytes);
      const permit = { storeTimeMs: now, group: line.group, keyId: line.key, entitlement: undefined };
      const facts = { amount, memo, model: line.model, tokens: tokenSumsOf(tokens), upstream, costs };
      await here.store.settle(settleAsk({ tag: account.tag, requestId, groups: [] }, permit, facts));
    }
  };
  await Promise.all(Array.from({ length: FILLING }, one));
}

async function untilLines(store: Store, { tag }: TestAccount, count: number) {
  for (;;) {
    const lines = await store.readLedger(tag, 0, count);
    if (lines.length >= count) return lines;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Runs and times admissions and settlements of another account until it is stopped. */
function probe(store: Store, tag: Parameters<Store["getAccount"]>[0]): () => Promise<number[]> {
  const times: number[] = [];
  let stopped = false;
  const running = (async () => {
    while (!stopped) {
      const request = admitAsk({ tag, requestId: newRequestId(Date.now(), randomBytes) });
      const startedMs = performance.now();
      const permit = await store.admit(request);
      times.push(performance.now() - startedMs);
      if (permit.outcome === "admitted") await store.settle(settleAsk(request, permit, { voided: true }));
      await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
    }
  })();
  return async () => {
    stopped = true;
    await running;
    return times.sort((a, b) => a - b);
  };
}

/** Runs the command line in its own process, like an operator. */
async function command(
  here: GatewayHere,
  argv: readonly string[],
): Promise<{ status: number; bytes: number; last: string }> {
  const env = { ...process.env, TOLLGATE_ADMIN_URL: here.adminUrl, TOLLGATE_ADMIN_TOKEN: "test-admin-token" };
  const child = spawn(process.execPath, [MAIN, ...argv], { env, stdio: ["ignore", "pipe", "inherit"] });
  let bytes = 0;
  let last = "";
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    last = (last + chunk.toString()).slice(-200);
  });
  const [status] = (await once(child, "close")) as [number];
  return { status, bytes, last: last.trimEnd().split("\n").at(-1) ?? "" };
}

async function longestCommand(server: TestRedis): Promise<{ us: number; what: string }> {
  const socket = connect(server.port, "127.0.0.1");
  await once(socket, "connect");
  socket.write("SLOWLOG GET 4096\r\nSLOWLOG RESET\r\n");
  let text = "";
  while (!text.endsWith("+OK\r\n")) text += String((await once(socket, "data"))[0]);
  socket.destroy();
  const entries = [
    ...text.matchAll(/\*6\r\n:\d+\r\n:\d+\r\n:(\d+)\r\n\*\d+\r\n\$\d+\r\n(\S+)\r\n(?:\$\d+\r\n(\S*))?/g),
  ];
  const slowest = entries.map(([, us, name, what]) => ({ us: Number(us), what: `${name} ${what?.slice(0, 8) ?? ""}` }));
  return slowest.sort((a, b) => b.us - a.us)[0] ?? { us: 0, what: "under 200 us" };
}

/**
 * The longest turn of the event loop, in milliseconds of its own CPU time, so that other programs on the machine do not count. It keeps the
 * loop turning, so that a turn is one callback or few.
 */
function longestTurn(): () => number {
  let stopped = false;
  let longestUs = 0;
  let last = process.threadCpuUsage();
  const turn = () => {
    const now = process.threadCpuUsage();
    longestUs = Math.max(longestUs, now.user + now.system - last.user - last.system);
    last = now;
    if (!stopped) setImmediate(turn);
  };
  turn();
  return () => {
    stopped = true;
    return longestUs / 1_000;
  };
}

const quantile = (sorted: readonly number[], at: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? 0;
const ms = (value: number) => value.toFixed(1).padStart(8);

async function main(): Promise<void> {
  const [lines, keys] = [Number(values.lines), Number(values.keys)];
  const form = await openForm(values.form);
  const here = await startGatewayHere(form.url ? { store: form.url } : {});
  try {
    const account = await here.account({ usd: "1000000" });
    let startedMs = performance.now();
    await fill(here, account, lines);
    if (keys > 0) await addKeys(form.servers, keys);
    const other = await makeAccount(here.store, "Probe", { funds: 1_000_000n });
    process.stdout.write(`${JSON.stringify(machineFacts())}\n`);
    process.stdout.write(
      `${values.form}: an account of ${lines} lines, ${keys} other keys; made in ${Math.round((performance.now() - startedMs) / 1_000)} s\n\n`,
    );
    process.stdout.write(
      "command         seconds   store held ms  loop held ms   admissions beside it ms: p50     p99     max\n",
    );
    for (const name of ["nothing", ...values.commands.split(",")]) {
      for (const server of form.servers) await longestCommand(server);
      const stop = probe(here.store, other);
      const stopTurns = longestTurn();
      startedMs = performance.now();
      const argv = COMMANDS[name]?.(account.name);
      const ran = argv
        ? await command(here, argv)
        : await new Promise((resolve) => setTimeout(resolve, 5_000)).then(() => undefined);
      const seconds = (performance.now() - startedMs) / 1_000;
      const turnMs = stopTurns();
      const times = await stop();
      const held = await Promise.all(form.servers.map(longestCommand));
      const most = held.sort((a, b) => b.us - a.us)[0] ?? { us: 0, what: "" };
      process.stdout.write(
        `${name.padEnd(12)} ${ms(seconds)}   ${ms(most.us / 1_000)}      ${ms(turnMs)}             ${[0.5, 0.99, 1].map((at) => ms(quantile(times, at))).join("")}` +
          `   ${most.what}; ${ran ? `status ${ran.status}, ${ran.bytes} bytes: ${ran.last.slice(0, 60)}` : ""}\n`,
      );
    }
  } finally {
    await here.close();
    await form.stop();
  }
}

await main();
