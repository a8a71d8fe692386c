/**
 * Accepts the gateway's traces like an OpenTelemetry Collector. If one is installed (`otelcol` on the path, or
 * `TOLLGATE_OTELCOL`, with the OTLP receiver and the OTLP/HTTP exporter), it is used; otherwise `otlp-receiver.ts`
 * decodes the traces by the published definitions. `npm test` reports which one it was.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { startProcess, untilReady } from "./front-files.ts";
import { startReceiver } from "./otlp-receiver.ts";
import { freePorts } from "./ports.ts";

/** A span in the JSON form of OTLP. */
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
  /** The address for OTLP over HTTP: `http://127.0.0.1:port`. */
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

/** The path of the installed collector; undefined if there is none. */
function collectorProgram(): string | undefined {
  const own = process.env.TOLLGATE_OTELCOL;
  if (own) return own;
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, "otelcol")).find((path) => existsSync(path));
}

/** What reads the traces in this run, as text. */
export function tracesReadBy(): string {
  const program = collectorProgram();
  return program === undefined
    ? "a receiver that decodes OTLP by its published definitions (no otelcol on the path, TOLLGATE_OTELCOL is not set)"
    : `the OpenTelemetry Collector ${program}`;
}

/** Starts a collector that passes on at once what it gets. */
export async function startCollector(): Promise<Collector> {
  const bodies: string[] = [];
  const program = collectorProgram();
  const take = (json: string) => void bodies.push(json);
  const { endpoint, stop } = program === undefined ? await startReceiver(take) : await startProgram(program, take);
  return { endpoint, spans: () => bodies.flatMap(spansOf), received: () => bodies.join("\n"), stop };
}

async function startProgram(
  program: string,
  onTraces: (json: string) => void,
): Promise<Pick<Collector, "endpoint" | "stop">> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-otelcol-"));
  const sink = createServer((request, response) => void take(request, response, onTraces));
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
  return { endpoint, stop };
}

/** No queue and no batch: when the exporter gets its response, the test has the spans. */
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

async function take(
  request: IncomingMessage,
  response: ServerResponse,
  onTraces: (json: string) => void,
): Promise<void> {
  onTraces(await text(request));
  response.setHeader("content-type", "application/json").end("{}");
}

function spansOf(body: string): ReceivedSpan[] {
  const { resourceSpans = [] } = JSON.parse(body) as {
    resourceSpans?: { scopeSpans: { spans: ReceivedSpan[] }[] }[];
  };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}
