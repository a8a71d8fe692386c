/** The panels of the shipped dashboards, as their files have them. */
import { readFileSync } from "node:fs";

export interface PanelJson {
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string; readonly thresholds?: { readonly steps: unknown[] } };
  };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** The variables as Grafana fills them in with everything selected and a short window. */
export function filledIn(expr: string): string {
  return expr
    .replaceAll("$__rate_interval", "20s")
    .replaceAll("$__range", "60s")
    .replaceAll(/\$(group|model|upstream)/g, ".*");
}

/** The panels of one dashboard, without its rows. */
export function panelsOf(name: string): PanelJson[] {
  const file = readFileSync(new URL(`../../../../grafana/dashboards/${name}.json`, import.meta.url), "utf8");
  const { panels } = JSON.parse(file) as { panels: PanelJson[] };
  return panels.filter(({ type }) => type !== "row");
}
