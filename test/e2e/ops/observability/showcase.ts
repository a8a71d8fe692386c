/**
 * `npm run showcase [-- SECONDS]`: the pictures of the dashboards in docs/pictures/. A gateway with simulated model
 * servers gets a minute and a half of traffic in three protocols; a real Prometheus scrapes it, and a selection of the
 * dashboards' own panels is drawn with its data.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { baseConfig, type ConfigFile, type ConfigPlaces, yamlOf } from "../../../rig/config.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startPrometheus } from "../../../rig/prometheus.ts";
import { CHROMIUM, ensureSystemPackages } from "../../../rig/system-packages.ts";
import { ask } from "../../protocol/whole/asking.ts";
import { pageOf } from "./drawn.ts";
import { filledIn, panelsOf } from "./panels.ts";
import { screenshot } from "./screenshot.ts";

const PICTURES = resolve("docs/pictures");
const BYTES_MAX = 150_000;
const DEFAULT_SECONDS = 90;
const SCRAPE_MS = 500;
const STEP_S = 1;
const TICK_MS = 250;
/** Requests per tick at the peak of the wave. */
const BUSY = 4;

/** For each dashboard, the panels that say most to a first-time viewer. */
const CHOSEN: Readonly<Record<string, { readonly size: string; readonly titles: readonly string[] }>> = {
  traffic: {
    size: "1240,735",
    titles: [
      "Requests per second",
      "Share of requests that failed upstream or here",
      "Time to first token, 95th percentile (s)",
      "Tokens per second",
      "Requests by protocol (per second)",
      "How are requests answered? (per second, by status)",
      "Tokens by kind (per second)",
      "Time to first token by model (s, median and 95th)",
      "How fast do models write? (output tokens per second, median)",
      "Why are requests refused? (per second, by cause)",
    ],
  },
  money: {
    size: "1240,690",
    titles: [
      "Spend in this time range (USD)",
      "Cost in this time range (USD)",
      "Margin in this time range (USD)",
      "Set aside for running requests (USD)",
      "Spend per group (USD per hour)",
      "Spend per model (USD per hour)",
      "Cost per upstream (USD per hour)",
      "Margin per model (USD per hour)",
      "Price of a thousand tokens as paid (USD, by group)",
      "Spend of the last 24 hours per group (USD)",
    ],
  },
};

const UPSTREAMS = { east: "chat", west: "messages", south: "responses" } as const;
const MODELS = {
  "writer-small": { upstream: "east", input: "0.4", output: "1.6", betweenMs: 4 },
  "coder-large": { upstream: "west", input: "3", output: "15", betweenMs: 9 },
  "thinker-1": { upstream: "south", input: "2", output: "8", betweenMs: 14 },
} as const;
const GROUPS = { support: "1.5", research: "1.2", agents: "1.3" } as const;

function showcaseConfig(places: ConfigPlaces): string {
  const entries = Object.entries;
  const { cards: _none, ...base } = baseConfig(places);
  const config = {
    ...base,
    upstreams: Object.fromEntries(
      entries(UPSTREAMS).map(([name, protocol]) => [name, { protocol, base_url: places.upstreamUrl, api_key: "k" }]),
    ),
    models: Object.fromEntries(
      entries(MODELS).map(([name, { upstream, input, output }]) => [
        name,
        {
          plans: ["free", "pro"],
          price: { input, output },
          context_tokens: 200_000,
          max_output_tokens: 32_000,
          routes: [{ upstream, cost: { input, output } }],
        },
      ]),
    ),
    groups: {
      ...Object.fromEntries(
        entries(GROUPS).map(([name, multiplier]) => [name, { kind: "pay_per_use", models: ["*"], multiplier }]),
      ),
      trial: { kind: "pay_per_use", models: ["*"], limits: { requests_per_minute: 40 } },
    },
  };
  return yamlOf(config as unknown as ConfigFile);
}

/** The same traffic in every run. */
let state = 20_261_123;
function chance(): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
  return state / 2 ** 32;
}
const between = (least: number, most: number): number => Math.round(least + chance() * (most - least));
const oneOf = <T>(list: readonly T[]): T => list[Math.floor(chance() * list.length)] as T;

ensureSystemPackages([CHROMIUM]);
const seconds = Number(process.argv[2] ?? DEFAULT_SECONDS);
const here = await startGatewayHere({ config: showcaseConfig });
const prometheus = await startPrometheus(new URL(here.adminUrl).host, { scrapeMs: SCRAPE_MS });
const pages = mkdtempSync(join(tmpdir(), "tollgate-showcase-"));
try {
  await prometheus.until('up{job="tollgate"} == 1');
  const fromS = Date.now() / 1_000;
  await traffic();
  await draw(fromS, Date.now() / 1_000);
} finally {
  await prometheus.stop();
  await here.close();
  rmSync(pages, { recursive: true, force: true });
}

/**
 * Waves of requests on top of each other, with a bad minute of one upstream and clients that have no money or a wrong
 * key.
 */
async function traffic(): Promise<void> {
  const keys = new Map<string, string>();
  for (const group of Object.keys(GROUPS)) keys.set(group, (await here.account({ group, usd: "1000" })).key);
  const poor = (await here.account({ group: "support", usd: "0" })).key;
  const trial = (await here.account({ group: "trial", usd: "5" })).key;
  const running = new Set<Promise<void>>();
  const ticks = (seconds * 1_000) / TICK_MS;
  for (let tick = 0; tick < ticks; tick++) {
    const part = tick / ticks;
    const wave = 0.55 + 0.3 * Math.sin(part * 9) + 0.15 * Math.sin(part * 23);
    const count = Math.max(1, Math.round(wave * BUSY + chance() - 0.5));
    for (let i = 0; i < count; i++) {
      const who = chance();
      // The first is busy by day, the last by night.
      const group = who < 0.55 - 0.4 * part ? "support" : who < 0.75 ? "research" : "agents";
      const isBad = part > 0.45 && part < 0.6 && chance() < 0.3;
      const key = chance() < 0.03 ? poor : chance() < 0.06 ? trial : keys.get(group);
      const done = request(key as string, isBad).finally(() => running.delete(done));
      running.add(done);
    }
    await setTimeout(TICK_MS);
  }
  await Promise.all(running);
  await prometheus.until("sum(tollgate_in_flight)", (samples) => samples[0]?.value === 0);
}

async function request(key: string, isBad: boolean): Promise<void> {
  const model = oneOf(Object.keys(MODELS) as (keyof typeof MODELS)[]);
  const { betweenMs } = MODELS[model];
  const protocol = oneOf<Protocol>(["chat", "chat", "messages", "messages", "responses"]);
  const output = between(30, 160);
  const behavior = {
    text: "some words of an answer ".repeat(Math.ceil(output / 8)),
    deltaChars: 12,
    pace: { firstDelayMs: between(60, 320), betweenMs },
    usage: { input: between(800, 6_000), output },
    ...(isBad ? { fault: { status: 500 } } : {}),
  };
  const content = `simulate: ${JSON.stringify(behavior)}`;
  const words = protocol === "responses" ? { input: content } : { messages: [{ role: "user", content }] };
  const reply = await ask(here, protocol, key, { model, stream: true, ...words });
  await reply.text();
}

async function draw(fromS: number, toS: number): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  for (const [name, { size, titles }] of Object.entries(CHOSEN)) {
    const all = panelsOf(name);
    const panels = [];
    for (const title of titles) {
      const panel = all.find((one) => one.title === title);
      if (!panel) throw new Error(`The dashboard ${name} has no panel "${title}".`);
      const series = [];
      for (const { expr, legendFormat } of panel.targets ?? []) {
        const asked = filledIn(expr)
          .replaceAll("[20s]", "[10s]")
          .replaceAll("[60s]", `[${Math.ceil(toS - fromS)}s]`);
        series.push({ legend: legendFormat, range: await prometheus.queryRange(asked, fromS, toS, STEP_S) });
      }
      panels.push({ title, type: panel.type, unit: panel.fieldConfig?.defaults.unit ?? "", series });
    }
    const page = join(pages, `${name}.html`);
    writeFileSync(page, pageOf(name, panels));
    const picture = join(PICTURES, `${name}.png`);
    screenshot(page, picture, size);
    const { size: bytes } = statSync(picture);
    if (bytes > BYTES_MAX)
      throw new Error(`${picture} has ${bytes} bytes; a picture of the README may have ${BYTES_MAX}.`);
    console.log(`${picture}  ${Math.round(bytes / 1_000)} KB`);
  }
}
