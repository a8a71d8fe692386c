/**
 * The head of a request to an upstream, built afresh from an allow-list in lower case: nothing of the client's head is
 * copied, so neither its key nor a hop-by-hop header can slip through, also with `Expect: 100-continue`.
 */
import type { Protocol } from "../../values/protocol.ts";
import type { HeaderEdits } from "../../values/rules.ts";
import type { UpstreamSettings } from "../../values/settings.ts";

/**
 * Client headers that mean something to an upstream and nothing to us. Baggage is not among them (docs/failure-model.md
 * row 74).
 */
const FORWARDED_HEADERS: ReadonlySet<string> = new Set([
  "anthropic-beta",
  "anthropic-version",
  "openai-beta",
  "traceparent",
  "tracestate",
]);

/** Framing belongs to undici, the host to the base URL; a configured header cannot take them over. */
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

/** The version that a messages upstream is spoken to in when the client named none. */
const MESSAGES_VERSION = "2023-06-01";

/** Visible ASCII and spaces: what any server reads the same way. */
const PLAIN_VALUE = /^[\x20-\x7e]*$/;

/** The longest value of a client's header that goes on, in characters; a longer one stays here. */
export const FORWARDED_VALUE_LENGTH_MAX = 1024;

/**
 * Compiles what every request to an upstream carries: our own headers, then the client's, then the operator's rules of
 * the request, last the upstream's `headers`: what is nearer to the wire has the last word.
 * @returns a function that gives the flat name-value list of one request, as undici takes it. Mostly it is the same for all
 * requests, so that nobody may change it.
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

/** Versions and betas of the messages protocol mean nothing to an upstream of another. */
function mayForward(protocol: Protocol, name: string, value: string): boolean {
  if (name.startsWith("anthropic-") && protocol !== "messages") return false;
  return FORWARDED_HEADERS.has(name) && value.length <= FORWARDED_VALUE_LENGTH_MAX && PLAIN_VALUE.test(value);
}

const CREDENTIAL_HEADERS: Readonly<Record<Protocol, (key: string) => [string, string]>> = {
  chat: (key) => ["authorization", `Bearer ${key}`],
  responses: (key) => ["authorization", `Bearer ${key}`],
  messages: (key) => ["x-api-key", key],
};

function credential(settings: UpstreamSettings): [string, string][] {
  return settings.apiKey === undefined ? [] : [CREDENTIAL_HEADERS[settings.protocol](settings.apiKey.reveal())];
}
