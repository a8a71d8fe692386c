/**
 * Maps the request target, byte for byte, to a route (docs/failure-model.md rows 16 to 18 and 42). A path that a
 * lenient server in front of or behind us could read as `/v1...` is an API path: it matches exactly, or gets 404.
 */
import { type Refusal, refusal } from "../values/errors.ts";
import { percentReadings } from "../values/key-search.ts";
import { PROTOCOL_NAMES, PROTOCOLS, type Protocol, protocolOfPath } from "../values/protocol.ts";

/** The endpoints besides the three model paths. */
export type SideName = "count_tokens" | "input_tokens" | "compact" | "stored_response" | "usage" | "explain";

export type PathRoute =
  | { readonly kind: "model"; readonly protocol: Protocol }
  /** HEAD on a model path: 200 without a body, for clients that test the address. */
  | { readonly kind: "probe"; readonly protocol: Protocol }
  /** GET /v1/models, or one model where `id` is given (percent-decoded). */
  | { readonly kind: "models"; readonly id: string | undefined }
  | { readonly kind: "side"; readonly name: SideName; readonly protocol: Protocol }
  /** The pages for owners of keys. */
  | { readonly kind: "console" }
  | { readonly kind: "site" };

interface SideRow {
  readonly path: RegExp;
  /** The path as docs/api.md writes it, for hints. */
  readonly address: string;
  readonly methods: readonly string[];
  readonly name: SideName;
  readonly protocol: Protocol;
}

/** The id of a response: an upstream's own, or one that was wrapped here (src/convert/responses/stored/stored.ts). */
const RESPONSE_ID = "(?:[A-Za-z0-9_-]{1,128}|[a-z]{1,16}_gw1\\.[A-Za-z0-9_.-]{1,1440})";

const SIDE_ROWS: readonly SideRow[] = [
  { path: /^\/v1\/usage$/, address: "/v1/usage", methods: ["GET"], name: "usage", protocol: "chat" },
  { path: /^\/v1\/explain$/, address: "/v1/explain", methods: ["POST"], name: "explain", protocol: "chat" },
  {
    path: /^\/v1\/messages\/count_tokens$/,
    address: "/v1/messages/count_tokens",
    methods: ["POST"],
    name: "count_tokens",
    protocol: "messages",
  },
  {
    path: /^\/v1\/responses\/input_tokens$/,
    address: "/v1/responses/input_tokens",
    methods: ["POST"],
    name: "input_tokens",
    protocol: "responses",
  },
  {
    path: /^\/v1\/responses\/compact$/,
    address: "/v1/responses/compact",
    methods: ["POST"],
    name: "compact",
    protocol: "responses",
  },
  {
    path: new RegExp(`^/v1/responses/${RESPONSE_ID}$`),
    address: "/v1/responses/{id}",
    methods: ["GET", "DELETE"],
    name: "stored_response",
    protocol: "responses",
  },
  {
    path: new RegExp(`^/v1/responses/${RESPONSE_ID}/cancel$`),
    address: "/v1/responses/{id}/cancel",
    methods: ["POST"],
    name: "stored_response",
    protocol: "responses",
  },
  {
    path: new RegExp(`^/v1/responses/${RESPONSE_ID}/input_items$`),
    address: "/v1/responses/{id}/input_items",
    methods: ["GET"],
    name: "stored_response",
    protocol: "responses",
  },
];

/** What every path of the API begins with, and what a client's base address may lack. */
const PREFIX = "/v1";
const MODELS_ADDRESS = "/v1/models";
const MODELS_PATH = /^\/v1\/models(?:\/([A-Za-z0-9._~:@%+-]{1,384}))?$/;

/** Splits a request target at its first `?`; the returned query has no leading `?`. */
export function splitTarget(target: string): { path: string; query: string } {
  const at = target.indexOf("?");
  return at === -1 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at + 1) };
}

/**
 * Finds the route of a path.
 * @param path the target without its query, not decoded.
 * @param wantsWebSocket whether the request asks for an upgrade to WebSocket.
 * @param consolePath the path of the console's pages; undefined if there are none.
 * @returns the route; or a refusal: `unknown_path`, `doubled_prefix`, `method_not_allowed`, `upgrade_required`.
 */
export function routeOf(
  method: string,
  path: string,
  wantsWebSocket = false,
  consolePath: string | undefined = undefined,
): PathRoute | Refusal {
  const model = protocolOfPath(path);
  if (model) return modelRoute(method, model.name, wantsWebSocket);
  const models = MODELS_PATH.exec(path);
  if (models) return modelsRoute(method, models[1]);
  const rows = SIDE_ROWS.filter((row) => row.path.test(path));
  const side = rows.find((row) => row.methods.includes(method));
  if (side) return { kind: "side", name: side.name, protocol: side.protocol };
  if (rows.length > 0) return methodNotAllowed(rows.flatMap((row) => row.methods));
  const canonical = canonicalPath(path);
  if (canonical.startsWith("/v1")) return nothingHere(canonical);
  if (consolePath !== undefined && isBelow(path, consolePath)) return { kind: "console" };
  return { kind: "site" };
}

/** Compares byte for byte. A path that only a lenient server would read as below the root does not match. */
function isBelow(path: string, root: string): boolean {
  return path === root || (path.startsWith(`${root}/`) && !hasParentSegment(path));
}

function modelRoute(method: string, protocol: Protocol, wantsWebSocket: boolean): PathRoute | Refusal {
  if (method === "POST") return { kind: "model", protocol };
  if (method === "HEAD") return { kind: "probe", protocol };
  if (method === "GET" && wantsWebSocket && protocol === "responses") {
    // RFC 9110 section 15.5.22: the answer names the protocol to use instead.
    return refusal("upgrade_required", {}, { headers: { upgrade: "HTTP/1.1", connection: "Upgrade" } });
  }
  return methodNotAllowed(["POST", "HEAD"]);
}

function modelsRoute(method: string, encodedId: string | undefined): PathRoute | Refusal {
  if (method !== "GET" && method !== "HEAD") return methodNotAllowed(["GET", "HEAD"]);
  if (encodedId === undefined) return { kind: "models", id: undefined };
  const id = decodeOnce(encodedId);
  return id === undefined ? refusal("unknown_path") : { kind: "models", id };
}

function methodNotAllowed(methods: readonly string[]): Refusal {
  return refusal("method_not_allowed", {}, { headers: { allow: methods.join(", ") } });
}

/** 404 for an unknown API path. If `/v1` was repeated, the message gives the corrected path. */
function nothingHere(canonical: string): Refusal {
  const single = canonical.replace(/^(?:\/v1)+(?=\/)/, "/v1");
  const corrected = single === canonical ? undefined : addressOf(single);
  if (corrected !== undefined) {
    // Clients take a 404 whose message has the word "model" for an unknown model.
    const detail = corrected.startsWith(MODELS_ADDRESS) ? undefined : `Use ${corrected}.`;
    return refusal("doubled_prefix", { detail }, { headers: hintHeader(corrected) });
  }
  const ending = hintFor(canonical);
  return refusal("unknown_path", {}, ending === undefined ? {} : { headers: hintHeader(ending) });
}

/** The address of the endpoint at a path, with `{id}` for an id; undefined if there is no endpoint. */
function addressOf(path: string): string | undefined {
  const models = MODELS_PATH.exec(path);
  if (models) return models[1] === undefined ? MODELS_ADDRESS : `${MODELS_ADDRESS}/{id}`;
  return protocolOfPath(path)?.path ?? SIDE_ROWS.find((row) => row.path.test(path))?.address;
}

/** The header that shows which address was probably meant, to a person or to a client that prints headers. */
export function hintHeader(path: string): Record<string, string> {
  return { "x-tollgate-hint": `use ${path}` };
}

/** The paths that clients post to. */
const POSTED: readonly string[] = [
  ...PROTOCOL_NAMES.map((name) => PROTOCOLS[name].path),
  ...SIDE_ROWS.filter(({ methods }) => methods.includes("POST")).map(({ address }) => address),
];

/** The path that a wrong path most likely meant, judged by its ending; undefined if nothing suggests one. */
export function hintFor(path: string): string | undefined {
  const canonical = canonicalPath(path).replace(/\/$/, "");
  return POSTED.find((posted) => canonical.endsWith(posted.slice(PREFIX.length)));
}

/** Whether the most lenient server would read a path as the root. */
export function isRoot(path: string): boolean {
  return canonicalPath(path) === "/";
}

/** Paths that are answered at the admin address and never here. */
const ADMIN_PATH = /^\/(?:healthz|readyz|metrics|admin(?:\/.*)?)$/;

/**
 * Whether a path belongs to the admin listener. A program that asks for it here must not get a page that looks like
 * success.
 */
export function isOfAdmin(path: string): boolean {
  return ADMIN_PATH.test(canonicalPath(path));
}

/** The protocol whose error format is used for this path; also works for unknown paths. */
export function protocolOfTarget(path: string): Protocol {
  const exact = protocolOfPath(path);
  if (exact) return exact.name;
  const canonical = canonicalPath(path);
  if (canonical.includes("/messages")) return "messages";
  return canonical.includes("/responses") ? "responses" : "chat";
}

/**
 * What the most lenient server would make of a path: decoded, lowercase, backslashes turned to slashes, dot segments
 * removed, slashes merged. Only used to decide that a path is *not* harmless.
 */
function canonicalPath(path: string): string {
  const kept: string[] = [];
  for (const segment of lenientSegments(path)) {
    if (segment === "..") kept.pop();
    else if (segment !== "" && segment !== ".") kept.push(segment);
  }
  return `/${kept.join("/")}`;
}

/** Whether the most lenient server would read a segment as the parent; also one with parameters (`..;a`). */
export function hasParentSegment(path: string): boolean {
  return lenientSegments(path).some((segment) => segment === ".." || segment.startsWith("..;"));
}

function lenientSegments(path: string): readonly string[] {
  const decoded = percentReadings(path).at(-1) as string;
  return decoded.toLowerCase().replaceAll("\\", "/").split("/");
}

function decodeOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
