/**
 * Tool names for the upstream, and back for the reply (docs/translation-rules.md rules 33 and 34). One `NameBook` per
 * request. Tool definitions are entered first, so that history and tool choice get the same names.
 */
import { createHash } from "node:crypto";
import type { Protocol } from "../../values/protocol.ts";
import type { RestoreMap, ToolRef } from "../hub.ts";

/** The longest tool name that each protocol takes, in characters. */
const NAME_CHARS_MAX: Readonly<Record<Protocol, number>> = { chat: 64, messages: 128, responses: 128 };

/** Separates a namespace from the name in it. */
const NAMESPACE_SEAM = "__";

/** The name of a tool in one string: children of a namespace as `{namespace}__{name}`. */
export function flatName(tool: ToolRef): string {
  return tool.namespace === undefined ? tool.name : `${tool.namespace}${NAMESPACE_SEAM}${tool.name}`;
}

/**
 * A name that the protocol takes: the name itself, or as much of it as fits before a digest of the original (rule 34).
 */
export function safeToolName(original: string, protocol: Protocol): string {
  const max = NAME_CHARS_MAX[protocol];
  const plain = original.replace(/[^a-zA-Z0-9_-]/g, "_");
  return plain === original && plain.length <= max && plain !== "" ? plain : withDigest(plain, original, max);
}

function withDigest(plain: string, original: string, max: number): string {
  const digest = createHash("sha256").update(original).digest("hex").slice(0, 8);
  return `${plain.slice(0, max - 9)}_${digest}`;
}

function keyOf(tool: ToolRef): string {
  return `${tool.namespace ?? ""}\u0000${tool.name}`;
}

export class NameBook {
  readonly #protocol: Protocol;
  readonly #byTool = new Map<string, string>();
  readonly #byName = new Map<string, ToolRef>();

  /** @param protocol the upstream's, whose limits apply. */
  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  /** Enters a defined tool. @returns its upstream name; undefined if the same tool is already entered. */
  define(tool: ToolRef): string | undefined {
    const key = keyOf(tool);
    if (this.#byTool.has(key)) return undefined;
    const flat = flatName(tool);
    let name = safeToolName(flat, this.#protocol);
    // A flattened name may equal another tool's name; the two must differ.
    if (this.#byName.has(name)) name = withDigest(name, key, NAME_CHARS_MAX[this.#protocol]);
    this.#byTool.set(key, name);
    this.#byName.set(name, tool);
    return name;
  }

  /** The upstream name of a tool in the history or the tool choice. */
  nameOf(tool: ToolRef): string {
    return this.#byTool.get(keyOf(tool)) ?? safeToolName(flatName(tool), this.#protocol);
  }

  /** The offered tool that the history or the tool choice refers to, if there is one. */
  defined(tool: ToolRef): ToolRef | undefined {
    return this.#byName.get(this.nameOf(tool));
  }

  /** Maps upstream names to the client's tools, for the reply. */
  get map(): RestoreMap {
    return this.#byName;
  }
}

/** The client's tool for an upstream name; a name that was never offered is kept. */
export function restoreTool(tools: RestoreMap, upstreamName: string): ToolRef {
  return tools.get(upstreamName) ?? { kind: "function", name: upstreamName };
}
