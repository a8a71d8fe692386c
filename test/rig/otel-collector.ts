/**
 * A real OpenTelemetry Collector, put together by the collector's own builder from the Go module proxy: its OTLP receiver
 * takes what we export, and its OTLP exporter gives it to the test as JSON. Built once, into the cache beside the packages.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePorts, startProcess, untilReady } from "./front-files.ts";

const VERSION = "0.160.0";
const MODULES = "go.opentelemetry.io/collector";
/** Some 100 modules are fetched and compiled, on a busy machine. */
const BUILD_TIMEOUT_MS = 900_000;
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/tollgate-otelcol", import.meta.url));
const execute = promisify(execFile);

/** A span as OTLP's JSON form has it. */
export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status?: { readonly code?: number; readonly message?: string };
}

export interface Collector {
  /** Where OTLP over HTTP is taken: `http://127.0.0.1:port`. */
  readonly endpoint: string;
  /** Every span received so far. */
  spans(): readonly ReceivedSpan[];
  /** Everything received so far, as text. */
  received(): string;
  stop(): Promise<void>;
}

/** A span's attributes as plain values. */
export function attributesOf(span: ReceivedSpan): Record<string, unknown> {
  return Object.fromEntries(
    (span.attributes ?? []).map(({ key, value }) => {
      const [[kind, plain] = ["", undefined]] = Object.entries(value);
      return [key, kind === "intValue" ? Number(plain) : plain];
    }),
  );
}

/**
 * The path of the program. `TOLLGATE_OTELCOL` names another one, with the OTLP receiver and the OTLP/HTTP exporter.
 * @throws Error that says what was tried, when it cannot be had: the tests fail and do not skip.
 */
export async function collectorProgram(): Promise<string> {
  const own = process.env.TOLLGATE_OTELCOL;
  if (own) return own;
  const program = join(CACHE, `otelcol-${VERSION}`);
  if (existsSync(program)) return program;
  console.log(`Building the OpenTelemetry Collector ${VERSION}; this takes some minutes, once.`);
  try {
    await build(program);
  } catch (error) {
    const reason = (error as { stderr?: string }).stderr || String(error);
    throw new Error(
      `The tests of traces did not run: there is no OpenTelemetry Collector ${VERSION}. ` +
        `Tried: go run ${MODULES}/cmd/builder@v${VERSION} (Go 1.25 or later). ` +
        `Name one of your own with TOLLGATE_OTELCOL=/path/to/otelcol. Reason: ${reason}`,
      { cause: error },
    );
  }
  return program;
}

/** Two test files may do this at once: each works in a folder of its own, and the rename is atomic. */
async function build(program: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const dir = mkdtempSync(join(CACHE, "build-"));
  const manifest = join(dir, "manifest.yaml");
  writeFileSync(
    manifest,
    `dist: {name: otelcol, output_path: ${JSON.stringify(dir)}, version: 1.0.0}
receivers: [{gomod: ${MODULES}/receiver/otlpreceiver v${VERSION}}]
exporters: [{gomod: ${MODULES}/exporter/otlphttpexporter v${VERSION}}]
`,
  );
  try {
    await execute("go", ["run", `${MODULES}/cmd/builder@v${VERSION}`, "--config", manifest], {
      timeout: BUILD_TIMEOUT_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    renameSync(join(dir, "otelcol"), program);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Starts a collector that hands on at once what it gets. */
export async function startCollector(): Promise<Collector> {
  const program = await collectorProgram();
  const dir = mkdtempSync(join(tmpdir(), "tollgate-otelcol-"));
  const bodies: string[] = [];
  const sink = createServer((request, response) => void take(request, response, bodies));
  await new Promise<void>((resolve) => sink.listen(0, "127.0.0.1", resolve));
  const [port] = await freePorts(1);
  const file = join(dir, "collector.yaml");
  writeFileSync(file, JSON.stringify(configuration(port ?? 0, (sink.address() as AddressInfo).port)));
  const front = startProcess(program, ["--config", file]);
  const endpoint = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    await front.stop("SIGTERM");
    sink.closeAllConnections();
    await new Promise((resolve) => sink.close(resolve));
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const empty = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    await untilReady(front, async () => (await fetch(`${endpoint}/v1/traces`, empty)).ok);
  } catch (error) {
    await stop();
    throw error;
  }
  return { endpoint, spans: () => bodies.flatMap(spansOf), received: () => bodies.join("\n"), stop };
}

/** No queue and no batch: the exporter's caller has its answer when the test has the spans. */
function configuration(receiverPort: number, sinkPort: number): object {
  const exporter = {
    endpoint: `http://127.0.0.1:${sinkPort}`,
    encoding: "json",
    compression: "none",
    sending_queue: { enabled: false },
    retry_on_failure: { enabled: false },
  };
  return {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${receiverPort}` } } } },
    exporters: { otlp_http: exporter },
    service: {
      telemetry: { metrics: { level: "none" }, logs: { level: "error" } },
      pipelines: { traces: { receivers: ["otlp"], exporters: ["otlp_http"] } },
    },
  };
}

async function take(request: IncomingMessage, response: ServerResponse, bodies: string[]): Promise<void> {
  bodies.push(await text(request));
  response.setHeader("content-type", "application/json").end("{}");
}

function spansOf(body: string): ReceivedSpan[] {
  const { resourceSpans = [] } = JSON.parse(body) as {
    resourceSpans?: { scopeSpans: { spans: ReceivedSpan[] }[] }[];
  };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}
