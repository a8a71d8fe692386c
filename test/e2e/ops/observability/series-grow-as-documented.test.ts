/**
 * docs/metrics.md says how many series a gateway has for its models and groups, and how a Prometheus drops some. The
 * table and the example are compared with a running gateway, and with what a Prometheus keeps of its page.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { parse } from "yaml";
import { each } from "../../../rig/config.ts";
import { type GatewayHere, settledMetrics, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { startPrometheus } from "../../../rig/prometheus.ts";
import { ask } from "../../protocol/whole/asking.ts";

const PROTOCOLS = ["chat", "messages"] as const;
const MODELS = ["chat-1", "chat-alias", "other-family"];
const GROUPS = ["money", "double-money"];
const DOCUMENT = readFileSync("docs/metrics.md", "utf8").split("## How many series")[1] ?? "";

/** Needs clients that leave, or hosted tools. */
const OF_OTHER_TRAFFIC = ["tollgate_left_streams_total", "tollgate_unpaid_tool_calls_total"];

interface Row {
  readonly family: string;
  /** The fewest and the most series of a combination. */
  readonly least: number;
  readonly most: number;
  readonly labels: readonly string[];
}

function rows(): Row[] {
  const lines = DOCUMENT.matchAll(
    /^\| `(\w+)` \| (\d+)(?: (?:to|or) (\d+))?( .*)? \| (`(?:protocol|group|upstream)`.*) \|$/gm,
  );
  return [...lines].map(([, name, least, most, more = "", combination = ""]) => ({
    family: `tollgate_${name}`,
    least: Number(least),
    most: more.includes("for each") ? Number.POSITIVE_INFINITY : Number(most ?? least),
    labels: [...combination.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label),
  }));
}

/** The series of a page, as the name of the family and the labels. */
function seriesOf(page: string): { family: string; labels: Readonly<Record<string, string>> }[] {
  return page.split("\n").flatMap((line) => {
    const [, name = "", labels = ""] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === "") return [];
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label, value]);
    return [{ family: name.replace(/_(bucket|sum|count)$/, ""), labels: Object.fromEntries(pairs) }];
  });
}

/** Each group streams once from each model, in each protocol. */
async function streamAll(here: GatewayHere): Promise<void> {
  for (const group of GROUPS) {
    const { key } = await here.account({ group });
    for (const protocol of PROTOCOLS)
      for (const model of MODELS) {
        const reply = await ask(here, protocol, key, { model, stream: true });
        await reply.text();
        assert.equal(reply.status, 200);
        await here.requestEnd(reply.headers.get("x-request-id") ?? "");
      }
  }
}

test("a running gateway has as many series as documented, and the example for Prometheus drops as many as it says", async (t) => {
  const groups = each(GROUPS, { models: [...MODELS] });
  const here = await startGatewayHere({ config: (places) => testConfig(places, { groups }) });
  t.after(() => here.close());
  const before = seriesOf(await settledMetrics(here.adminUrl));
  await streamAll(here);
  const page = seriesOf(await settledMetrics(here.adminUrl));
  const served = page.filter(({ labels }) => labels.model === undefined || MODELS.includes(labels.model));

  const documented = rows();
  assert.equal(documented.length, 13);
  for (const { family, least, most, labels } of documented) {
    const counts = new Map<string, number>();
    for (const one of served.filter((one) => one.family === family)) {
      const combination = labels.map((label) => one.labels[label]).join();
      counts.set(combination, (counts.get(combination) ?? 0) + 1);
    }
    if (!OF_OTHER_TRAFFIC.includes(family)) assert.ok(counts.size > 0, `${family} has series`);
    for (const [combination, count] of counts)
      assert.ok(count >= least && count <= most, `${count} of ${family} for ${combination}`);
  }
  const known = new Set(documented.map(({ family }) => family));
  const growing = page.filter(({ family, labels }) => !known.has(family) && labels.model !== undefined);
  assert.deepEqual(growing, [], "no other family has models");

  const [P, M, G] = [PROTOCOLS.length, MODELS.length, GROUPS.length];
  const [, perAll, perModelAndGroup] = /series = P × M × G × (\d+) \+ M × G × (\d+) \+/.exec(DOCUMENT) ?? [];
  const own = (series: typeof page) => series.filter(({ family, labels }) => known.has(family) && labels.group).length;
  assert.equal(own(page) - own(before), P * M * G * Number(perAll) + M * G * Number(perModelAndGroup));

  const job = parse(/^metric_relabel_configs:[^`]*/m.exec(DOCUMENT)?.[0] ?? "") as object;
  const prometheus = await startPrometheus(new URL(here.adminUrl).host, { scrapeMs: 200, job });
  t.after(() => prometheus.stop());
  const kept = async (name: string) => {
    const counted = await prometheus.until(`count({__name__=~"${name}_(bucket|sum|count)"})`);
    return (counted[0]?.value ?? 0) / (P * M * G);
  };
  assert.equal(await kept("tollgate_request_duration_seconds"), 18 - 16);
  assert.equal(await kept("tollgate_time_to_first_token_seconds"), 20 - 10);
  await prometheus.until('tollgate_time_to_first_token_seconds_bucket{le=~"5|5[.]0"}');
});
