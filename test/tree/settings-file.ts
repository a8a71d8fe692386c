/**
 * Generates the tables of all settings at the end of docs/configuration.md from the schema. `npm run settings` writes
 * them after the hand-written text.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { configSchema } from "../../src/config/schema/schema.ts";
import { defaultCapabilities } from "../../src/values/catalog.ts";

const FILE = "docs/configuration.md";
const HEADING = "## All settings\n";

/** The parts of a JSON Schema that are read here. */
interface Setting {
  readonly description?: string;
  readonly errorMessage?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly writeOnly?: boolean;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Setting>>;
  readonly patternProperties?: Readonly<Record<string, Setting>>;
  readonly items?: Setting;
}

interface Row {
  /** Below the section that is shown: `.timeouts.connect`. */
  readonly path: string;
  readonly value: string;
  readonly standard: string;
  readonly meaning: string;
}

const INTRODUCTION = `
These tables are those of the schema (\`npm run settings\` writes them). \`NAME\` stands for a name of your choice, \`[]\` for each entry of a list.
A value in a range is a whole number. A **duration** is a whole number and a unit without a space: \`500ms\` \`5s\` \`10m\` \`12h\` \`1d\`. It is above 0 and
at most \`1d\`, unless the table names another bound. A **size** is a whole number of bytes or has a unit: \`B\` \`KiB\` \`MiB\` \`GiB\` \`TiB\`. **US dollars** and
factors are decimals in quotes; a whole number may be written without them. A **secret** is best written as \`\${NAME}\` or \`file:/path\`. Where the
default is empty, nothing is set.
`;

/** Forms of values that the introduction explains, by the beginning of the words for a wrong value. */
const FORMS: readonly (readonly [begins: RegExp, form: string])[] = [
  [/^a duration:/, "duration"],
  [/^a size:/, "size"],
  [/^US dollars/, "US dollars"],
  [/^a factor as a quoted decimal such as "[^"]*": (.*), with .*/, "factor $1"],
  [/^a mapping of keys/, "section"],
  [/^an empty mapping: \{\}/, "`{}`"],
  [/^a whole number (from .*)/, "$1"],
  [/^true or false/, "`true` or `false`"],
  [/^a name that starts with/, "name"],
];

function formOf(setting: Setting): string {
  if (setting.writeOnly) return "secret";
  if (setting.enum) return setting.enum.map((one) => `\`${one}\``).join(" ");
  if (setting.items) return setting.items.properties ? "list of sections" : `list: ${formOf(setting.items)}`;
  const [named] = Object.values(setting.patternProperties ?? {});
  if (named) return Object.keys(named.properties ?? {}).length > 0 ? "sections by name" : `by name: ${formOf(named)}`;
  const words = setting.errorMessage?.replace(/^must be /, "") ?? "any value";
  const form = FORMS.find(([begins]) => begins.test(words));
  return form ? words.replace(new RegExp(`${form[0].source}.*`), form[1]) : words;
}

/** A default that depends on another setting is in the description: `Default: the context.` */
const DESCRIBED = / ?Default: ([^.]*(?:\.[\w/][^.]*)*)\./;

function rowOf(path: string, setting: Setting, isRequired: boolean, known: unknown): Row {
  const { description = "", default: standard = known } = setting;
  const described = DESCRIBED.exec(description);
  const shown = Array.isArray(standard) ? `[${standard.join(", ")}]` : String(standard);
  return {
    path,
    value: formOf(setting),
    standard: standard !== undefined ? `\`${shown}\`` : (described?.[1] ?? (isRequired ? "required" : "")),
    meaning: description.replace(DESCRIBED, "").trim(),
  };
}

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const CAPABILITIES = Object.fromEntries(
  Object.entries(defaultCapabilities("chat")).map(([name, value]) => [snake(name), value]),
);
/** Capabilities whose default depends on the upstream. */
const DEPENDENT: Readonly<Record<string, string>> = {
  custom_tools: "`true` if the upstream speaks responses",
  stop: "`native`; `emulate` if the upstream speaks responses",
  prompt_cache: "the upstream's",
};

/** All settings below one, without those whose table was shown before: these refer to it. */
function* below(setting: Setting, path: string, place: string, shown: Map<string, string>): Generator<Row> {
  const members = { ...setting.properties };
  const isCapability = place === "models.NAME.capabilities";
  for (const [name, member] of Object.entries(members)) {
    const known = isCapability && !(name in DEPENDENT) ? CAPABILITIES[name] : undefined;
    const row = rowOf(`${path}.${name}`, member, setting.required?.includes(name) ?? false, known);
    const dependent = isCapability ? DEPENDENT[name] : undefined;
    const at = `${place}.${name}`;
    const inner = innerOf(member);
    const alike = inner && shown.get(JSON.stringify(inner.setting.properties));
    const refers = alike === undefined ? "" : ` Its settings are those of \`${alike}\`.`;
    yield { ...row, standard: dependent ?? row.standard, meaning: `${row.meaning}${refers}` };
    if (!inner || alike !== undefined) continue;
    shown.set(JSON.stringify(inner.setting.properties), at);
    yield* below(inner.setting, `${path}.${name}${inner.step}`, `${at}${inner.step}`, shown);
  }
}

/** The section inside a setting: its own, or that of each entry. */
function innerOf(setting: Setting): { readonly setting: Setting; readonly step: string } | undefined {
  const [named] = Object.values(setting.patternProperties ?? {});
  if (setting.properties) return { setting, step: "" };
  if (setting.items?.properties) return { setting: setting.items, step: "[]" };
  if (named?.properties && Object.keys(named.properties).length > 0) return { setting: named, step: ".NAME" };
  return undefined;
}

const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
const line = ({ path, value, standard, meaning }: Row) =>
  `| \`${path}\` | ${cell(value)} | ${cell(standard)} | ${cell(meaning)} |\n`;
const HEAD = "\n| setting | value | default | meaning |\n| --- | --- | --- | --- |\n";

function tables(): string {
  const schema = configSchema as Setting;
  const shown = new Map<string, string>();
  const single: string[] = [];
  const sections: string[] = [];
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const row = rowOf(name, member, schema.required?.includes(name) ?? false, undefined);
    const inner = innerOf(member);
    single.push(line(inner ? { ...row, value: `[${row.value}](#settings-of-${name})` } : row));
    if (!inner) continue;
    const rows = [...below(inner.setting, inner.step, `${name}${inner.step}`, shown)];
    sections.push(
      `\n### Settings of \`${name}\`\n${HEAD}${rows.map((one) => line({ ...one, path: one.path.slice(1) })).join("")}`,
    );
  }
  return `${HEAD}${single.join("")}${sections.join("")}`;
}

/** The whole document: the text before the tables unchanged, and the tables from the schema. */
export function settingsDocument(): string {
  const words = readFileSync(FILE, "utf8").split(HEADING)[0] as string;
  return `${words}${HEADING}${INTRODUCTION}${tables()}`;
}

if (import.meta.main) writeFileSync(FILE, settingsDocument());
