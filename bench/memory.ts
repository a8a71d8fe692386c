/**
 * `node bench/memory.ts`: resident memory by kind, in MB from `/proc/PID/smaps`, of a gateway with the embedded store: idle after its start,
 * after the collection of a quiet minute (`src/telemetry/heap.ts`), right after `--requests N` complete replies (64,000), and after another
 * quiet minute. Medians of `--starts N` (3), one after the other except for the first quiet minute.
 *
 * `--form checkout|package|executable|bare` (package and executable from `--dist DIR`, made by `npm run build`; `bare` is the bare
 * Node proxy); `--flags "..."`: flags for Node, which the executable does not accept; `--quiet S`: seconds without a request, default 150;
 * `--idle`: only the first two states; `--json`: the figures of each start. The environment is passed on.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { programOptions } from "../test/rig/program-options.ts";
import { CASES, type Case } from "./cases.ts";
import type { Load, LoadResult } from "./load.ts";
import { BARE_PROXY, type Running, SUBJECTS, type Subject } from "./subjects.ts";

const { values } = programOptions({
  options: {
    form: { type: "string", default: "checkout" },
    dist: { type: "string", default: "dist" },
    main: { type: "string", default: "src/main.ts" },
    flags: { type: "string", default: "" },
    starts: { type: "string", default: "3" },
    requests: { type: "string", default: "64000" },
    quiet: { type: "string", default: "150" },
    idle: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const SETTLED_MS = 3_000;
const CONNECTIONS = 32;
const WHOLE = CASES.find(({ name }) => name === "chat, whole") as Case;

const flags = values.flags.split(" ").filter((flag) => flag !== "");
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  checkout: [process.execPath, ...flags, resolve(values.main)],
  package: [process.execPath, ...flags, resolve(values.dist, "package/bin/tollgate.cjs")],
  executable: [join(resolve(values.dist), "tollgate")],
};

const KINDS = ["V8 heap", "malloc", "V8 code", "binary and libraries", "all"] as const;
type Sizes = Record<(typeof KINDS)[number], number>;

/** Linux places malloc's mappings next to the libraries; V8 places its pages anywhere below. */
const MAPPED_FROM = 0x7f0000000000;

function kindOf(range: string, permissions: string, inode: string, name: string): (typeof KINDS)[number] {
  if (inode !== "0" || range.length <= "00400000-00400000".length)
    return name === "[heap]" ? "malloc" : "binary and libraries";
  if (permissions.includes("x")) return "V8 code";
  return name === "[heap]" || Number.parseInt(range, 16) >= MAPPED_FROM ? "malloc" : "V8 heap";
}

function sizesOf({ pids }: Running): Sizes {
  const sizes: Sizes = { "V8 heap": 0, malloc: 0, "V8 code": 0, "binary and libraries": 0, all: 0 };
  for (const part of readFileSync(`/proc/${pids[0]}/smaps`, "utf8").split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)) {
    const mb = (Number(/^Rss:\s+(\d+)/m.exec(part)?.[1]) * 1_024) / 1e6;
    const [range = "", permissions = "", , , inode = "", name = ""] = part.split("\n", 1).join().split(/\s+/);
    sizes[kindOf(range, permissions, inode, name)] += mb;
    sizes.all += mb;
  }
  return sizes;
}

function part(file: string): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)), { execArgv: [] });
}

const upstream = part("upstream.ts");
const load = part("load.ts");
const PHASES = ["idle", "after a quiet minute", "after requests", "after requests and a quiet minute"];
const found: Sizes[][] = PHASES.map(() => []);
const standing: Running[] = [];
try {
  const [{ port }] = (await once(upstream, "message")) as [{ port: number }];
  const name = values.form === "bare" ? BARE_PROXY : "tollgate, embedded";
  const subject = SUBJECTS.find((one) => one.name === name) as Subject;
  for (let i = 0; i < Number(values.starts); i++) {
    const running = await subject.start({ upstreamPort: port, profileDir: undefined, command: COMMANDS[values.form] });
    standing.push(running);
    await setTimeout(SETTLED_MS);
    found[0]?.push(sizesOf(running));
  }
  const quietMs = Number(values.quiet) * 1_000;
  await setTimeout(quietMs);
  found[1]?.push(...standing.map(sizesOf));
  for (const running of values.idle ? [] : standing) {
    await send(running);
    await setTimeout(SETTLED_MS);
    found[2]?.push(sizesOf(running));
  }
  if (!values.idle) {
    await setTimeout(quietMs);
    found[3]?.push(...standing.map(sizesOf));
  }
} finally {
  await Promise.all(standing.map((running) => running.stop()));
  upstream.disconnect();
  load.disconnect();
}
console.log(`| ${values.form} ${values.flags} | ${KINDS.join(" | ")} |\n|---|${KINDS.map(() => "---|").join("")}`);
for (const [at, sizes] of found.entries()) {
  if (sizes.length === 0) continue;
  const figures = KINDS.map((kind) => median(sizes.map((one) => one[kind])).toFixed(0));
  console.log(`| ${PHASES[at]} | ${figures.join(" | ")} |`);
  if (values.json)
    for (const one of sizes)
      console.log(JSON.stringify(one, (_, value) => (typeof value === "number" ? +value.toFixed(1) : value)));
}

function median(all: readonly number[]): number {
  return [...all].sort((a, b) => a - b)[all.length >> 1] as number;
}

async function send({ url, key }: Running): Promise<void> {
  const answered = once(load, "message");
  load.send({
    url: url + WHOLE.path,
    key,
    body: WHOLE.body,
    requests: Number(values.requests),
    connections: CONNECTIONS,
    refusable: false,
  } satisfies Load);
  const [{ problem }] = (await answered) as [LoadResult];
  if (problem !== undefined) throw new Error(problem);
}
