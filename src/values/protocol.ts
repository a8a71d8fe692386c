/**
 * The three wire protocols as data: everything that a stage outside `convert/` needs to know about them. A new protocol
 * needs one row here, one folder in `convert/` and one folder of goldens.
 */

export type Protocol = "chat" | "messages" | "responses";

export interface ProtocolFacts {
  readonly name: Protocol;
  /** The one path that clients POST to, matched byte for byte. */
  readonly path: string;
  /** Appended to an upstream's `base_url` (which ends in `/v1` for all three). */
  readonly upstreamPath: string;
  /** Body members that cap the output, first present wins. */
  readonly limitFields: readonly string[];
  /** Smallest output limit that a request may ask for (messages: 0 warms a prompt cache). */
  readonly limitMin: number;
  /** The smallest output limit that is sent upstream when a limit is lowered to what the funds cover. */
  readonly limitFloor: number;
  /** Required body members with the JSON types that each may have. */
  readonly requiredFields: readonly { readonly name: string; readonly types: readonly JsonType[] }[];
  /** Members whose presence proves that the body was written for another protocol. */
  readonly foreignFields: readonly { readonly name: string; readonly protocol: Protocol }[];
  /** Header that repeats the request id for this protocol's SDKs, in addition to `x-request-id`. */
  readonly requestIdHeader?: string;
}

export type JsonType = "string" | "number" | "boolean" | "object" | "array" | "null";

export const PROTOCOLS: Readonly<Record<Protocol, ProtocolFacts>> = {
  chat: {
    name: "chat",
    path: "/v1/chat/completions",
    upstreamPath: "/chat/completions",
    limitFields: ["max_completion_tokens", "max_tokens"],
    limitMin: 1,
    limitFloor: 1,
    requiredFields: [
      { name: "model", types: ["string"] },
      { name: "messages", types: ["array"] },
    ],
    foreignFields: [
      { name: "input", protocol: "responses" },
      { name: "instructions", protocol: "responses" },
      { name: "max_output_tokens", protocol: "responses" },
    ],
  },
  messages: {
    name: "messages",
    path: "/v1/messages",
    upstreamPath: "/messages",
    limitFields: ["max_tokens"],
    limitMin: 0,
    limitFloor: 1,
    requiredFields: [
      { name: "model", types: ["string"] },
      { name: "max_tokens", types: ["number"] },
      { name: "messages", types: ["array"] },
    ],
    foreignFields: [
      { name: "input", protocol: "responses" },
      { name: "max_output_tokens", protocol: "responses" },
      { name: "max_completion_tokens", protocol: "chat" },
    ],
    requestIdHeader: "request-id",
  },
  responses: {
    name: "responses",
    path: "/v1/responses",
    upstreamPath: "/responses",
    limitFields: ["max_output_tokens"],
    limitMin: 1,
    limitFloor: 16,
    requiredFields: [
      { name: "model", types: ["string"] },
      { name: "input", types: ["string", "array"] },
    ],
    foreignFields: [
      { name: "messages", protocol: "chat" },
      { name: "max_tokens", protocol: "chat" },
      { name: "max_completion_tokens", protocol: "chat" },
    ],
  },
};

export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as readonly Protocol[];

const BY_PATH: ReadonlyMap<string, ProtocolFacts> = new Map(
  Object.values(PROTOCOLS).map((protocol) => [protocol.path, protocol]),
);

/** The protocol whose path this is, byte for byte; undefined for every other path. */
export function protocolOfPath(path: string): ProtocolFacts | undefined {
  return BY_PATH.get(path);
}

/** Servers whose documented endpoints have no version in the path. */
const WITHOUT_VERSION: ReadonlySet<string> = new Set(["api.deepseek.com"]);

/**
 * What an upstream's `base_url` probably lacks. Servers of the messages protocol have their endpoints below `/v1`,
 * whatever comes before it. For the other protocols, only an empty path is suspicious.
 * @returns the address with `/v1`; undefined if nothing seems to be missing.
 */
export function withVersion(baseUrl: string, protocol: Protocol): string | undefined {
  const { origin, pathname, hostname } = new URL(baseUrl);
  const path = pathname.replace(/\/+$/, "");
  const isBare = path === "" && !WITHOUT_VERSION.has(hostname);
  const lacks = protocol === "messages" ? !/\/v\d[^/]*$/.test(path) : isBare;
  return lacks ? `${origin}${path}/v1` : undefined;
}

/**
 * An upstream's `base_url` without the endpoint path, if it ends in one, because that path is appended anyway;
 * undefined for any other.
 */
export function withoutEndpoint(baseUrl: string): string | undefined {
  const bare = baseUrl.replace(/\/+$/, "");
  const endpoint = Object.values(PROTOCOLS).find(({ upstreamPath }) => bare.endsWith(upstreamPath));
  return endpoint && bare.slice(0, -endpoint.upstreamPath.length);
}
