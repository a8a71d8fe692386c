/** The Lua scripts: read from `lua/` once, each with the parts that it uses before it, and their SHA-1 for EVALSHA. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { BUNDLED_FILES } from "../../values/program/files.ts";

export interface Script {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
}

/** Parts of every script that changes more of an account than its own fields. */
const CHANGING = ["common", "sums", "change"] as const;

/** Parts of every script that releases holds. */
const LIMITS = ["limits", "budgets"] as const;

/** The shared parts that are put before each script. */
const PARTS = {
  admit: [...CHANGING, "key", ...LIMITS, "buckets", "bucket-limits", "holds", "sweep", "card", "cards", "idempotency"],
  extend: [...CHANGING, ...LIMITS, "holds", "sweep", "card"],
  settle: [...CHANGING, "notices", ...LIMITS, "buckets", "holds", "sweep", "card", "idempotency", "ledger"],
  "account-create": ["common"],
  "account-drop": [],
  "account-plan": ["common"],
  "account-limits": ["common"],
  "account-notify": ["common"],
  "account-change": ["common"],
  "account-close": ["common"],
  "account-rename": ["common"],
  "name-reserve": [],
  "name-claim": [],
  "name-move": [],
  "names-read": [],
  "key-create": ["common"],
  "key-change": ["common", "key", "notices"],
  "key-rotate": ["common", "key"],
  "key-uses": [],
  "key-read": ["common", "key", "card", "cards", "card-texts"],
  credit: [...CHANGING, "notices", ...LIMITS, "holds", "sweep", "ledger"],
  grant: [...CHANGING, "card", "cards", "card-texts", "ledger"],
  "cards-read": ["common", "card", "cards", "card-texts"],
  "limits-read": ["common", "holds"],
  "figures-read": ["common"],
  "days-page": [],
  "marks-read": [],
  "marks-amounts": [],
  "upstreams-page": [],
  "ledger-archive": CHANGING,
  "code-create": ["common"],
  "code-claim": ["common", "codes"],
  "code-done": ["codes"],
  "code-void": ["codes"],
  "code-index": [],
  "batch-index": ["common"],
  "claim-note": ["common"],
  "claim-drop": [],
  "claim-list": ["common"],
  epoch: ["common"],
  "notice-add": ["common", "notices"],
  "notice-take": ["common", "notices"],
  "notices-read": ["common", "notices"],
  "notice-lease": [],
  "sign-in-keep": ["common", "sign-ins"],
  "sign-in-drop": ["common", "sign-ins"],
  "sign-ins-read": ["common", "sign-ins"],
  rights: [],
  "write-probe": [],
} as const;

type ScriptName = keyof typeof PARTS;
export type Scripts = Readonly<Record<ScriptName, Script>>;

const READ_ONLY: ReadonlySet<string> = new Set([
  "key-read",
  "cards-read",
  "limits-read",
  "figures-read",
  "days-page",
  "marks-read",
  "marks-amounts",
  "names-read",
  "upstreams-page",
  "claim-list",
  "notices-read",
  "sign-ins-read",
  "rights",
]);

/**
 * Reads all scripts. The shebang makes Redis refuse a whole script when it is out of memory, and check that the
 * script's keys share a slot.
 */
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
  const bundled = BUNDLED_FILES?.[`store/redis/lua/${name}.lua`];
  return bundled ?? readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
}
