/** A real Prometheus with the shipped rules, in a temporary folder on a free port, stopped by process id. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
import { startProcess, untilReady } from "./front-files.ts";
import { freePorts } from "./ports.ts";

const DEPLOY = fileURLToPath(new URL("../../deploy/", import.meta.url));
const POLL_MS = 50;
/** The maximum time until Prometheus has scraped a value. */
const WAIT_MS_MAX = 60_000;

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Seconds since the epoch, and the value. */
  readonly values: readonly (readonly [number, number])[];
}

export interface Prometheus {
  readonly url: string;
  /** Evaluates an expression now. @throws Error with Prometheus' own message if it refuses the expression. */
  query(expr: string): Promise<Sample[]>;
  queryRange(expr: string, fromS: number, toS: number, stepS: number): Promise<Series[]>;
  /** The number of exemplars that are stored for a series. */
  exemplars(expr: string, fromS: number, toS: number): Promise<number>;
  /** Waits until the expression has a result that satisfies `enough`, or any result if it is not given. */
  until(expr: string, enough?: (samples: readonly Sample[]) => boolean): Promise<Sample[]>;
  stop(): Promise<void>;
}

/**
 * @param target `host:port` of the admin listener that is scraped.
 * @param options.job additional members of the scrape job.
 */
export async function startPrometheus(
  target: string,
  options: { scrapeMs: number; job?: object },
): Promise<Prometheus> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-prometheus-"));
  const [port] = await freePorts(1);
  writeConfig(dir, target, options);
  const front = startProcess("prometheus", [
    `--config.file=${join(dir, "prometheus.yml")}`,
    `--storage.tsdb.path=${join(dir, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--enable-feature=exemplar-storage",
    "--log.level=warn",
  ]);
  const url = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    await front.stop("SIGTERM");
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await untilReady(front, async () => (await fetch(`${url}/-/ready`)).ok);
  } catch (error) {
    await stop();
    throw error;
  }
  const api = async (path: string, parameters: Record<string, string>): Promise<unknown> => {
    const reply = await fetch(`${url}/api/v1/${path}`, { method: "POST", body: new URLSearchParams(parameters) });
    const { status, data, error } = (await reply.json()) as { status: string; data: unknown; error?: string };
    if (status !== "success") throw new Error(`${error}: ${parameters.query}`);
    return data;
  };
  const query = async (expr: string): Promise<Sample[]> => {
    const { result } = (await api("query", { query: expr })) as {
      result: { metric: Record<string, string>; value: [number, string] }[];
    };
    return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  };
  return {
    url,
    query,
    async queryRange(expr, fromS, toS, stepS) {
      const span = { start: String(fromS), end: String(toS), step: String(stepS) };
      const { result } = (await api("query_range", { query: expr, ...span })) as {
        result: { metric: Record<string, string>; values: [number, string][] }[];
      };
      return result.map(({ metric, values }) => ({
        metric,
        values: values.map(([at, v]) => [at, Number(v)] as const),
      }));
    },
    async exemplars(expr, fromS, toS) {
      const data = await api("query_exemplars", { query: expr, start: String(fromS), end: String(toS) });
      return (data as { exemplars: unknown[] }[]).reduce((sum, { exemplars }) => sum + exemplars.length, 0);
    },
    async until(expr, enough = (samples) => samples.length > 0) {
      const deadline = performance.now() + WAIT_MS_MAX;
      for (;;) {
        const samples = await query(expr);
        if (enough(samples)) return samples;
        if (performance.now() > deadline) throw new Error(`not true in time: ${expr}: ${JSON.stringify(samples)}`);
        // Prometheus does not signal that it has scraped.
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    stop,
  };
}

/** The shipped configuration, with frequent scrapes of this target. Alerts fire as soon as their condition is true. */
function writeConfig(dir: string, target: string, { scrapeMs, job }: Parameters<typeof startPrometheus>[1]): void {
  const config = parse(readFileSync(join(DEPLOY, "prometheus.yml"), "utf8")) as {
    global: Record<string, string>;
    scrape_configs: { static_configs: { targets: string[] }[] }[];
  };
  config.global = { scrape_interval: `${scrapeMs}ms`, evaluation_interval: `${scrapeMs}ms` };
  for (const scrape of config.scrape_configs) Object.assign(scrape, { static_configs: [{ targets: [target] }] }, job);
  writeFileSync(join(dir, "prometheus.yml"), stringify(config));
  copyFileSync(join(DEPLOY, "recording-rules.yml"), join(dir, "recording-rules.yml"));
  const alerts = readFileSync(join(DEPLOY, "alerts.yml"), "utf8").replace(/^ +for: .*\n/gm, "");
  writeFileSync(join(dir, "alerts.yml"), alerts);
  const recording = readFileSync(join(DEPLOY, "recording-rules.yml"), "utf8").replace(/^ +interval: .*\n/gm, "");
  writeFileSync(join(dir, "recording-rules.yml"), recording);
}
