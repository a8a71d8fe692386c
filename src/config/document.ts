/**
 * Turns YAML text into plain values and remembers where each one is in the file. Only this file imports the `yaml`
 * package.
 *
 * It is stricter than YAML where mistakes are likely: duplicate keys, tags, several documents and merge keys are
 * refused; the number of aliases and their expansion are bounded; numbers beyond 2^53 are not silently rounded.
 */
import { isAlias, isCollection, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from "yaml";
import { LIMITS } from "./defaults.ts";
import { type ConfigPath, type Position, Problems, shownKey } from "./problems.ts";

/** The value at a path, and its position in the file. */
interface PlacedValue {
  readonly keyOffset: number | undefined;
  readonly valueOffset: number | undefined;
  /** A scalar's text as written, `${NAME}` unexpanded; undefined for mappings and lists. */
  readonly written: string | undefined;
  /** How YAML reads it: `float` is a number with a decimal point or an exponent. */
  readonly kind: "text" | "float" | "other";
}

export interface ConfigDocument {
  /**
   * Mappings without a prototype, arrays, strings, numbers, booleans, null. Undefined if the text is not valid YAML.
   */
  readonly value: unknown;
  readonly problems: Problems;
  /** The position of a key or a value. If it is missing, the position of its parent. */
  positionOf(path: ConfigPath, at: "key" | "value"): Position;
  /** The text of a scalar as it is written in the file; undefined for anything else. */
  writtenAt(path: ConfigPath): string | undefined;
  kindAt(path: ConfigPath): "text" | "float" | "other";
}

/**
 * `{` and `}` end a plain scalar inside `[...]` and `{...}`, so that `[${KEY}]` would be a syntax error. While YAML is
 * parsed, each brace of a reference is replaced by one private-use character, so positions stay the same.
 */
const OPEN = "\uE000";
const CLOSE = "\uE001";
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

const hideReferences = (text: string): string => text.replace(REFERENCE, `$$${OPEN}$1${CLOSE}`);
const showReferences = (text: string): string => text.replaceAll(OPEN, "{").replaceAll(CLOSE, "}");

/** Our own messages for syntax errors: the parser's messages may quote the text, which may be a secret. */
const SYNTAX: Readonly<Record<string, string>> = {
  BAD_ALIAS:
    'an alias (*name) without an anchor (&name) before it; if the asterisk itself is meant, put it in quotes: "*"',
  BAD_DQ_ESCAPE: "an escape that YAML does not know inside double quotes; use single quotes to write a backslash",
  BAD_INDENT: "wrong indentation or bracket: something before this point is not closed or not aligned",
  BAD_SCALAR_START: "a value cannot start with this character; put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: "a second colon on this line; put a value that contains a colon and a space in quotes",
  BLOCK_IN_FLOW: "inside brackets, only the bracketed notation is allowed",
  MISSING_CHAR: "something is missing here: a closing quote, a bracket, a comma, or the space after a colon",
  MULTILINE_IMPLICIT_KEY: "a key without a value; the colon and the space after the key may be missing",
  MULTIPLE_DOCS: "a second YAML document begins here; a configuration must be one document",
  TAB_AS_INDENT: "a tab; YAML is indented with spaces",
  RESOURCE_EXHAUSTION: "the file is nested too deeply",
  TAG_RESOLVE_FAILED: "a YAML tag (!name); tags are not supported",
  UNEXPECTED_TOKEN: "unexpected text; a quote, a bracket or the indentation before it may be wrong",
};

/** Tags that the parser always knows. They make bytes, dates and sets, and no setting has such a value. */
const FOREIGN_TAGS: ReadonlySet<string | undefined> = new Set(
  ["binary", "omap", "pairs", "set", "timestamp"].map((name) => `tag:yaml.org,2002:${name}`),
);

/** Parses the text. `problems` has every syntax error. `value` is undefined if there is any, except duplicate keys. */
export function readDocument(text: string): ConfigDocument {
  const problems = new Problems();
  const lines = new LineCounter();
  const places = new Map<string, PlacedValue>();

  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const positionOf = (path: ConfigPath, at: "key" | "value"): Position => {
    for (let length = path.length; length > 0; length--) {
      const place = places.get(JSON.stringify(path.slice(0, length)));
      if (!place) continue;
      const exact = length === path.length && at === "value";
      const offset = exact ? (place.valueOffset ?? place.keyOffset) : (place.keyOffset ?? place.valueOffset);
      if (offset !== undefined) return positionAt(offset);
    }
    return { line: 1, column: 1 };
  };
  const document = (value: unknown): ConfigDocument => ({
    value,
    problems,
    positionOf,
    writtenAt: (path) => places.get(JSON.stringify(path))?.written,
    kindAt: (path) => places.get(JSON.stringify(path))?.kind ?? "other",
  });

  if (Buffer.byteLength(text) > LIMITS.fileBytesMax) {
    problems.add([], `the file is larger than ${LIMITS.fileBytesMax} bytes`);
    return document(undefined);
  }
  if (text.includes(OPEN) || text.includes(CLOSE) || text.includes("\0")) {
    problems.add([], "the file holds a NUL or a private-use character (U+E000, U+E001); remove it");
    return document(undefined);
  }
  const parsed = parse(hideReferences(text), lines);
  if (!parsed) {
    problems.add([], SYNTAX.RESOURCE_EXHAUSTION as string);
    return document(undefined);
  }
  // After the first error a parser guesses; its later errors are consequences of the first.
  for (const fault of [...parsed.errors.slice(0, 1), ...parsed.warnings]) {
    const opened = UNCLOSED.test(fault.message) ? openedAt(parsed, fault.pos[0]) : undefined;
    const words = opened
      ? `the ${opened.what} that opens here is not closed by line ${positionAt(fault.pos[0]).line}, or its content is not indented`
      : (SYNTAX[fault.code] ?? "this cannot be read");
    problems.add([], `not valid YAML: ${words}`, positionAt(opened?.offset ?? fault.pos[0]));
  }
  if (!problems.none) return document(undefined);
  return document(plainValue(parsed.contents, parsed, { problems, places, positionAt }));
}

function parse(text: string, lineCounter: LineCounter): ReturnType<typeof parseDocument> | undefined {
  try {
    return parseDocument(text, {
      lineCounter,
      intAsBigInt: true,
      prettyErrors: false,
      // Needed to see whether a bracket was closed.
      keepSourceTokens: true,
      schema: "core",
      uniqueKeys: false,
    });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The parser's messages for an unclosed bracket or quote. They are never shown. */
const UNCLOSED = /^Flow |^Missing closing /;

/**
 * Finds the unclosed bracket or quote that ends at a fault; if there are several, the innermost. The parser names only
 * where it gave up, often many lines below.
 */
function openedAt(
  parsed: ReturnType<typeof parseDocument>,
  faultOffset: number,
): { readonly what: "bracket" | "quote"; readonly offset: number } | undefined {
  let found: ReturnType<typeof openedAt>;
  const isOpen = (range: Node["range"]) => range?.[1] === faultOffset && range[0] >= (found?.offset ?? 0);
  visit(parsed, (_key, node) => {
    if (isCollection(node) && node.flow && isOpen(node.range) && !isClosed(node)) {
      found = { what: "bracket", offset: node.range?.[0] ?? 0 };
    }
    if (isScalar(node) && /^QUOTE_/.test(node.type ?? "") && isOpen(node.range)) {
      found = { what: "quote", offset: node.range?.[0] ?? 0 };
    }
  });
  return found;
}

/** Whether the bracket is closed by its own kind: the parser also accepts the other kind. */
function isClosed({ srcToken }: Node): boolean {
  if (srcToken?.type !== "flow-collection") return false;
  const closing = srcToken.start.type === "flow-seq-start" ? "flow-seq-end" : "flow-map-end";
  return srcToken.end.some(({ type }) => type === closing);
}

interface DocumentWalk {
  readonly problems: Problems;
  readonly places: Map<string, PlacedValue>;
  readonly positionAt: (offset: number) => Position;
}

function plainValue(top: Node | null, parsed: ReturnType<typeof parseDocument>, walk: DocumentWalk): unknown {
  let values = 0;
  let aliases = 0;
  // Problems after such a fault would be its consequences, so nothing else is read.
  let hopeless = false;

  const visit = (node: unknown, path: ConfigPath, keyOffset: number | undefined): unknown => {
    values += 1;
    if (hopeless) return undefined;
    if (values > LIMITS.valuesMax) {
      hopeless = true;
      walk.problems.add([], `the file holds more than ${LIMITS.valuesMax} values once its aliases are written out`);
      return undefined;
    }
    if (path.length > LIMITS.depthMax) {
      hopeless = true;
      walk.problems.add(path.slice(0, 1), `nested deeper than ${LIMITS.depthMax} levels`, "key");
      return undefined;
    }
    if (isAlias(node)) {
      aliases += 1;
      if (aliases > LIMITS.aliasesMax) {
        hopeless = true;
        walk.problems.add([], `more than ${LIMITS.aliasesMax} aliases (*name) are used; write the values out`);
        return undefined;
      }
      const anchored = node.resolve(parsed);
      if (anchored) return visit(anchored, path, keyOffset);
      hopeless = true;
      walk.problems.add(path, `not valid YAML: ${SYNTAX.BAD_ALIAS}`, walk.positionAt(node.range?.[0] ?? 0));
      return undefined;
    }
    const range = (node as Node | null)?.range;
    if (FOREIGN_TAGS.has((node as Node | null)?.tag)) {
      hopeless = true;
      walk.problems.add(path, `not valid YAML: ${SYNTAX.TAG_RESOLVE_FAILED}`, walk.positionAt(range?.[0] ?? 0));
      return undefined;
    }
    walk.places.set(JSON.stringify(path), {
      keyOffset,
      valueOffset: isScalar(node) && node.value === null && !node.source ? undefined : (range?.[0] ?? undefined),
      written: isScalar(node) ? showReferences(node.source ?? String(node.value ?? "")) : undefined,
      kind: isScalar(node) ? kindOf(node.value) : "other",
    });
    if (isMap(node)) return visitMap(node.items, path);
    if (isSeq(node)) return node.items.map((item, index) => visit(item, [...path, index], undefined));
    if (!isScalar(node)) return null;
    if (typeof node.value === "bigint") return Number(node.value);
    return typeof node.value === "string" ? showReferences(node.value) : node.value;
  };

  const visitMap = (items: readonly { key: unknown; value: unknown }[], path: ConfigPath): unknown => {
    const map: Record<string, unknown> = Object.create(null);
    for (const { key, value } of items) {
      const name = isScalar(key) && key.value !== null ? showReferences(key.source ?? String(key.value)) : undefined;
      const keyOffset = (key as Node | null)?.range?.[0];
      if (name === undefined) {
        walk.problems.add(path, "a key in this mapping is not a plain name", "key");
        continue;
      }
      const at = [...path, name];
      if (name in map) {
        const message = `"${shownKey(name)}" is written twice in this mapping; keep one of them`;
        walk.problems.add(at, message, walk.positionAt(keyOffset ?? 0));
        continue;
      }
      map[name] = visit(value, at, keyOffset);
    }
    return map;
  };

  const value = visit(top, [], undefined);
  return hopeless ? undefined : value;
}

function kindOf(value: unknown): PlacedValue["kind"] {
  if (typeof value === "string") return "text";
  return typeof value === "number" ? "float" : "other";
}
