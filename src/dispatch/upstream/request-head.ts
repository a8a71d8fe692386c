/**
 * The head of a request to an upstream, built from an allow-list in lowercase. Nothing of the client's head is
 * copied, so neither its key nor a hop-by-hop header can pass, even in a request with `Expect: 100-continue`.
 */
import type { Protocol } from "../../values/protocol.ts";
import type { HeaderEdits } from "../../values/rules.ts";
import type { UpstreamSettings } from "../../values/settings.ts";

/**
 * Client headers that mean something to an upstream of the messages protocol and nothing to the gateway. The client's
 * trace context is not among them (docs/failure-model.md row 74).
 */
const FORWARDED_HEADERS: ReadonlySet<string> = new Set(["anthropic-beta", "anthropic-version"]);

/** Framing belongs to undici, the host to the base URL; configured headers cannot override them. */
const NEVER_CONFIGURED: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The version for a messages upstream if the client sent none. */
const MESSAGES_VERSION = "2023-06-01";

/** Visible ASCII and spaces, which every server reads in the same way. */
const PLAIN_VALUE = /^[\x20-\x7e]*$/;

/** The longest value of a client's header that is forwarded, in characters; longer ones are dropped. */
export const FORWARDED_VALUE_LENGTH_MAX = 1024;

/**
 * Compiles the headers of every request to an upstream: our own, then the client's, then the operator's rules for the
 * request, last the upstream's `headers`. Later ones override earlier ones.
 * @returns a function that gives the flat name-value list of one request, as undici takes it. Usually it is shared by
 *   all requests, so it must not be modified.
 */
export function compileRequestHead(
  settings: UpstreamSettings,
): (stream: boolean, forwarded: readonly (readonly [string, string])[], edits: readonly HeaderEdits[]) => string[] {
  const configured = [...settings.headers].map(([name, value]): [string, string] => [
    name.toLowerCase(),
    value.reveal(),
  ]);
  const ours = new Map<string, string>([
    ["content-type", "application/json"],
    ["accept-encoding", "identity"],
    ["user-agent", "tollgate"],
    ...credential(settings),
    ...(settings.protocol === "messages" ? [["anthropic-version", MESSAGES_VERSION] as const] : []),
  ]);
  const made = (
    stream: boolean,
    forwarded: readonly (readonly [string, string])[],
    edits: readonly HeaderEdits[],
  ): string[] => {
    const head = new Map(ours).set("accept", stream ? "text/event-stream" : "application/json");
    for (const [name, value] of forwarded) {
      if (mayForward(settings.protocol, name.toLowerCase(), value)) head.set(name.toLowerCase(), value);
    }
    for (const edit of edits) applyEdit(head, edit);
    for (const [name, value] of configured) {
      if (!NEVER_CONFIGURED.has(name)) head.set(name, value);
    }
    return [...head].flat();
  };
  const plain = { streamed: made(true, [], []), whole: made(false, [], []) };
  return (stream, forwarded, edits) => {
    if (forwarded.length > 0 || edits.length > 0) return made(stream, forwarded, edits);
    return stream ? plain.streamed : plain.whole;
  };
}

function applyEdit(head: Map<string, string>, { remove, add }: HeaderEdits): void {
  for (const name of remove) if (!NEVER_CONFIGURED.has(name)) head.delete(name);
  for (const { name, value } of add) if (!NEVER_CONFIGURED.has(name)) head.set(name, value.reveal());
}

function mayForward(protocol: Protocol, name: string, value: string): boolean {
  if (protocol !== "messages" || !FORWARDED_HEADERS.has(name)) return false;
  return value.length <= FORWARDED_VALUE_LENGTH_MAX && PLAIN_VALUE.test(value);
}

const CREDENTIAL_HEADERS: Readonly<Record<Protocol, (key: string) => [string, string]>> = {
  chat: (key) => ["authorization", `Bearer ${key}`],
  responses: (key) => ["authorization", `Bearer ${key}`],
  messages: (key) => ["x-api-key", key],
};

function credential(settings: UpstreamSettings): [string, string][] {
  return settings.apiKey === undefined ? [] : [CREDENTIAL_HEADERS[settings.protocol](settings.apiKey.reveal())];
}
