/**
 * Codes as files: a table for spreadsheets, or a page to print and cut. Both contain the codes, which no later answer
 * contains.
 */
import type { JsonObject } from "../../values/json-object.ts";
import { csv } from "../output/csv.ts";

export const CODE_FORMATS = ["text", "csv", "html"] as const;
export type CodeFormat = (typeof CODE_FORMATS)[number];

/** @param body the answer to the request that created the codes. */
export function codesAsCsv(body: JsonObject, items: readonly JsonObject[]): string {
  const { card, label, redeem_by, batch_id } = body;
  const rows = items.map(({ id, code }) => ({ code, id, card, label, redeem_by, batch_id }));
  return csv(["code", "id", "card", "label", "redeem_by", "batch_id"], rows);
}

/** A self-contained page: no scripts, fonts or pictures, and its policy does not allow loading any. */
export function codesAsPage(body: JsonObject, items: readonly JsonObject[]): string {
  const title = body.label === null ? `Codes of the card ${String(body.card)}` : String(body.label);
  const facts = [
    lastsWords(Number(body.lasts_seconds)),
    body.quota_usd === null ? "" : `worth ${String(body.quota_usd)} USD`,
    body.redeem_by === null ? "" : `redeem by ${String(body.redeem_by)} (UTC)`,
  ].filter((fact) => fact !== "");
  const cards = items.map(
    ({ id, code }) => `<li>
<p class="kind">${escaped(title)}</p>
<p class="code">${escaped(code)}</p>
<p>${escaped([body.card, ...facts].join(", "))}</p>
<p class="id">${escaped(id)}</p>
</li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title>
<style>
body { margin: 10mm; font: 11pt sans-serif; }
ul { margin: 0; padding: 0; display: grid; grid-template-columns: 1fr 1fr; gap: 4mm; list-style: none; }
li { padding: 4mm; border: 1px dashed #888; break-inside: avoid; overflow-wrap: anywhere; }
p { margin: 0 0 1.5mm; }
.kind { font-weight: bold; }
.code { font: bold 14pt monospace; }
.id { margin: 0; color: #555; font-size: 8pt; }
</style>
</head>
<body>
<ul>
${cards.join("\n")}
</ul>
</body>
</html>
`;
}

const SPANS: readonly (readonly [name: string, seconds: number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** A duration such as "30 days", in the largest unit that gives a whole number. */
function lastsWords(seconds: number): string {
  const [name, size] = SPANS.find(([, one]) => seconds % one === 0) ?? ["second", 1];
  const count = seconds / size;
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(value: unknown): string {
  return String(value ?? "").replaceAll(/[&<>"']/g, (sign) => ENTITIES[sign] as string);
}
