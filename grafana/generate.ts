/** Writes the dashboards as the JSON files that Grafana provisions: `npm run dashboards`. A test compares both. */
import { writeFileSync } from "node:fs";
import { MONEY } from "./money.ts";
import { build, type Dashboard } from "./panels.ts";
import { SATURATION } from "./saturation.ts";
import { TRAFFIC } from "./traffic.ts";
import { UPSTREAMS } from "./upstreams.ts";

/** All dashboards, by the name of their file. */
export const DASHBOARDS: ReadonlyMap<string, Dashboard> = new Map([
  ["traffic", TRAFFIC],
  ["money", MONEY],
  ["upstreams", UPSTREAMS],
  ["saturation", SATURATION],
]);

/** The text of a dashboard's file. */
export function fileOf(dashboard: Dashboard): string {
  return `${JSON.stringify(build(dashboard), undefined, 2)}\n`;
}

if (import.meta.main) {
  for (const [name, dashboard] of DASHBOARDS)
    writeFileSync(new URL(`dashboards/${name}.json`, import.meta.url), fileOf(dashboard));
}
