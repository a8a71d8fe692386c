/** The rules of deploy/ as the tests read them. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

export const RULE_FILES = ["recording-rules.yml", "alerts.yml"].map((name) =>
  fileURLToPath(new URL(`../../../../deploy/${name}`, import.meta.url)),
);

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

interface Recording {
  readonly record: string;
  readonly expr: string;
}

function rulesOf(file: string | undefined): unknown[] {
  const { groups } = parse(readFileSync(file ?? "", "utf8")) as { groups: { rules: unknown[] }[] };
  return groups.flatMap((group) => group.rules);
}

export const RECORDINGS = rulesOf(RULE_FILES[0]) as readonly Recording[];
export const ALERTS = rulesOf(RULE_FILES[1]) as readonly Alert[];
