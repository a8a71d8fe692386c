/**
 * Checks a document against the schema. Every deviation becomes a problem with its position and a remedy. The deviating
 * value is removed, so that later checks see only values of the right form.
 */
import type { ConfigDocument } from "./document.ts";
import { type ConfigPath, keyOf, shownKey, suggestion } from "./problems.ts";
import { type SchemaError, schemaErrors, type TSchema } from "./schema/words.ts";

/** The parts of a JSON Schema that are used here. */
interface Word {
  readonly properties?: Readonly<Record<string, Word>>;
  readonly patternProperties?: Readonly<Record<string, Word>>;
  readonly items?: Word;
  readonly errorMessage?: string;
  readonly writeOnly?: boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
}

/** The part of the schema for a path; undefined if there is none. */
function wordAt(schema: TSchema, path: ConfigPath): Word | undefined {
  let word: Word | undefined = schema as Word;
  for (const part of path) {
    if (!word) return undefined;
    if (typeof part === "number") word = word.items;
    else if (word.properties) word = Object.hasOwn(word.properties, part) ? word.properties[part] : undefined;
    else word = Object.values(word.patternProperties ?? {})[0];
  }
  return word;
}

/** Whether the value at a path must never be shown. */
export function isSecret(schema: TSchema, path: ConfigPath): boolean {
  return wordAt(schema, path)?.writeOnly === true;
}

/**
 * Whether the schema has a list or a mapping of secrets at a path. A string in its place is usually one of the secrets,
 * written without brackets.
 */
function holdsSecrets(schema: TSchema, path: ConfigPath): boolean {
  const { items, patternProperties } = wordAt(schema, path) ?? {};
  return [items, ...Object.values(patternProperties ?? {})].some((word) => word?.writeOnly === true);
}

/** Adds a problem for each deviation. */
export function checkSchema(schema: TSchema, document: ConfigDocument): void {
  if (document.value === null) {
    document.problems.add([], "the file is empty; it needs at least upstreams, plans, models and groups");
    return;
  }
  for (const error of schemaErrors(schema, document.value)) report(error, schema, document);
}

function report(error: SchemaError, schema: TSchema, document: ConfigDocument): void {
  const { problems } = document;
  const word = wordAt(schema, error.path);
  if (error.keyword === "required") {
    for (const name of error.names) {
      const owner = error.path.length === 0 ? "the file" : keyOf(error.path);
      problems.add([...error.path, name], `"${name}" is missing: ${owner} needs it`, "key");
    }
    return;
  }
  if (error.keyword === "additionalProperties") {
    for (const name of error.names) problems.add([...error.path, name], unknownKey(name, word), "key");
    return;
  }
  const bound = boundMessage(error.keyword, word);
  if (bound !== undefined) {
    problems.add(error.path, bound, "key");
    return;
  }
  // An unknown key is also reported as a value that the schema `false` rejects, and a union once per branch.
  if (error.keyword === "boolean" || word?.errorMessage === undefined) return;
  problems.add(error.path, `${shown(error.path, schema, document)} is refused: it ${word.errorMessage}${keysOf(word)}`);
}

/** The keys of a section: its `errorMessage` does not list them. */
const keysOf = ({ properties }: Word): string => (properties ? `: ${Object.keys(properties).join(", ")}` : "");

function unknownKey(name: string, owner: Word | undefined): string {
  if (!owner?.properties) return `"${shownKey(name)}" cannot be a name here: it ${nameRule(owner)}`;
  const known = Object.keys(owner.properties);
  const near = suggestion(name, known);
  const listed = known.length === 0 ? "this mapping has no keys" : `known here: ${known.join(", ")}`;
  return `unknown key "${shownKey(name)}"${near === "" ? `; ${listed}` : near}`;
}

const nameRule = (owner: Word | undefined): string => owner?.errorMessage?.split("; a name ")[1] ?? "is not allowed";

function boundMessage(keyword: string, word: Word | undefined): string | undefined {
  if (keyword === "minItems") return `must have at least ${word?.minItems} entry`;
  if (keyword === "maxItems") return `must have at most ${word?.maxItems} entries`;
  if (keyword === "minProperties") return `must have at least ${word?.minProperties} entry`;
  if (keyword === "maxProperties") return `must have at most ${word?.maxProperties} entries`;
  return undefined;
}

const SHOWN_CHARS_MAX = 60;

/** A value as written, for a message. Of secrets, URLs and collections only the kind is named. */
export function shown(path: ConfigPath, schema: TSchema, document: ConfigDocument): string {
  if (isSecret(schema, path) || holdsSecrets(schema, path)) return "this value (not shown)";
  const written = document.writtenAt(path);
  if (written === undefined) return "this value";
  if (written === "") return "an empty value";
  // Any URL may hold credentials, even if they are not allowed there.
  if (written.includes("://")) return "this URL";
  const cut = written.length > SHOWN_CHARS_MAX ? `${written.slice(0, SHOWN_CHARS_MAX)}…` : written;
  const kind = document.kindAt(path);
  if (kind === "text") return JSON.stringify(cut);
  return kind === "float" ? `${cut} without quotes` : cut;
}

/** Removes every value that has a problem. Other entries of a list keep their index, so that paths stay valid. */
export function withoutFaults(document: ConfigDocument): unknown {
  for (const path of document.problems.paths()) {
    const owner = path.slice(0, -1).reduce<unknown>((value, part) => memberOf(value, part), document.value);
    const last = path.at(-1);
    if (last === undefined || typeof owner !== "object" || owner === null) continue;
    if (Array.isArray(owner)) owner[last as number] = undefined;
    else delete (owner as Record<string, unknown>)[last as string];
  }
  return document.value;
}

function memberOf(value: unknown, part: string | number): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string | number, unknown>)[part] : undefined;
}
