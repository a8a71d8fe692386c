/** The Lua scripts: read from `lua/` once, each with the parts that it uses in front, and their SHA-1 for EVALSHA. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export interface Script {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
}

/** Which shared parts stand in front of which script; `readonly` scripts also run where writes are refused. */
const PARTS = {
  admit: ["common", "buckets", "holds", "cards", "idempotency"],
  extend: ["common", "holds", "cards"],
  settle: ["common", "buckets", "holds", "cards", "idempotency"],
  "account-create": ["common"],
  "account-drop": [],
  "account-plan": ["common"],
  "name-reserve": [],
  "key-create": ["common"],
  "key-change": ["common"],
  "key-read": ["common", "cards"],
  credit: ["common"],
  grant: ["common", "cards"],
  "cards-read": ["common", "cards"],
  "limits-read": ["common", "holds"],
  "figures-read": ["common"],
  "days-page": [],
  "ledger-archive": ["common"],
  "code-create": ["common"],
  "code-claim": ["common", "codes"],
  "code-done": ["codes"],
  "code-void": ["codes"],
  "code-index": [],
  "claim-note": ["common"],
  "claim-drop": [],
  "claim-list": ["common"],
  epoch: ["common"],
} as const;

export type ScriptName = keyof typeof PARTS;
export type Scripts = Readonly<Record<ScriptName, Script>>;

const READ_ONLY: ReadonlySet<string> = new Set([
  "key-read",
  "cards-read",
  "limits-read",
  "figures-read",
  "days-page",
  "claim-list",
]);

/** Reads all scripts. The shebang makes Redis refuse a script whole under OOM and check that its keys share a slot. */
export function loadScripts(): Scripts {
  const entries = Object.entries(PARTS).map(([name, parts]) => [name, loadScript(name, parts)]);
  return Object.fromEntries(entries) as Scripts;
}

function loadScript(name: string, parts: readonly string[]): Script {
  const shebang = READ_ONLY.has(name) ? "#!lua flags=no-writes" : "#!lua";
  const source = [shebang, ...[...parts, name].map(readLua)].join("\n");
  return { name, source, sha: createHash("sha1").update(source).digest("hex") };
}

function readLua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
}
