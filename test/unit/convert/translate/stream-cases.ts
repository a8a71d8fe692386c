/**
 * The recorded streams: the behavior of the simulated upstream for each, and the requests of the clients.
 * `record-streams.ts` makes the recordings; the tests only read them.
 */
import { readdirSync, readFileSync } from "node:fs";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import type { Body } from "../request/translate.ts";
import { smallBody } from "./rig.ts";

export const STREAMS = new URL("../../../golden/streams/", import.meta.url);

const PATCH = '*** Begin Patch\n*** Add File: a.txt\n+one "quoted" \\ line\n*** End Patch\n';
const TWO_CALLS = [
  { name: "f", arguments: { city: "Ulm", days: [1, 2] }, id: "call_a" },
  { name: "g", arguments: { text: 'a "b" \\ }' }, id: "call_b" },
];

/** The behaviors by name; a function if the protocols need different ones. */
const CASES: Readonly<Record<string, Behavior | ((upstream: Protocol) => Behavior | undefined)>> = {
  text: { text: "Hello there, all is well.", deltaChars: 5 },
  thinking: { thinking: "Let me see. Yes.", text: "It is so.", usage: { reasoning: 4 } },
  redacted: (upstream) => (upstream === "chat" ? undefined : { redacted: "c2VjcmV0", text: "ok" }),
  "parallel-calls": { text: "Looking.", tools: TWO_CALLS, thinking: "Two calls." },
  "interleaved-calls": (upstream) =>
    upstream === "messages" ? undefined : { tools: TWO_CALLS, interleave: true, deltaChars: 4 },
  "freeform-call": (upstream) => ({
    tools: [
      upstream === "responses"
        ? { name: "apply_patch", kind: "custom", arguments: PATCH, id: "call_p" }
        : { name: "apply_patch", arguments: { input: PATCH }, id: "call_p" },
    ],
  }),
  "namespaced-call": { tools: [{ name: "mcp__git__log", arguments: { n: 3 }, id: "call_n" }] },
  refusal: { refusal: "I cannot help with that." },
  "cut-at-the-limit": { text: "This goes on and", stop: "length" },
  "call-cut-at-the-limit": { tools: [{ name: "f", arguments: '{"city": "Ul', id: "call_a" }], stop: "length" },
  "cached-usage": {
    text: "ok",
    usage: { input: 10, cached: 90, cacheWrite: 5, output: 20, reasoning: 8 },
  },
  "empty-arguments": { tools: [{ name: "f", arguments: "", id: "call_e" }] },
  unicode: { text: 'Grüße, 世界! 👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 \u2028 "\\', thinking: "🤔\n", deltaChars: 1 },
  "crlf-lines": { text: "line one\r\nline two", lineEnd: "\r\n" },
  pings: { text: "slow and steady", pings: 1 },
  "several-texts": { texts: ["First.", "Second."] },
  "stop-string": { text: "yes</block>no", deltaChars: 4 },
  "nearly-a-stop-string": { text: "a</blue></bloc", deltaChars: 3 },
  "error-in-the-middle": {
    text: "Once upon a time",
    fault: { errorEventAfter: { n: 5, type: "overloaded_error", code: "server_is_overloaded", message: "Overloaded" } },
  },
  "cut-in-the-middle": { text: "Once upon a time there was", fault: { endAfterEvents: 4 } },
  "end-without-marker": { text: "Good enough.", fault: { noTerminal: true } },
  "no-usage": { text: "free?", noUsage: true },
};

/** The simulator's behavior for a case on an upstream; undefined if the case does not exist there. */
export function behaviorOf(name: string, upstream: Protocol): Behavior | undefined {
  const found = CASES[name];
  return typeof found === "function" ? found(upstream) : found;
}

export const CASE_NAMES: readonly string[] = Object.keys(CASES);

const SCHEMA = { type: "object", properties: {} };
const STOP = "</block>";

/** The request of each client, with tools of every kind that its protocol has, reasoning and usage. */
export function bodyOf(client: Protocol): Body {
  return smallBody(client, { stream: true, ...ASKS[client] });
}

const ASKS: Readonly<Record<Protocol, Body>> = {
  chat: {
    stream_options: { include_usage: true },
    stop: [STOP],
    tools: [
      ...["f", "g", "mcp__git__log"].map((name) => ({ type: "function", function: { name, parameters: SCHEMA } })),
      { type: "custom", custom: { name: "apply_patch" } },
    ],
  },
  messages: {
    stop_sequences: [STOP],
    thinking: { type: "adaptive" },
    tools: ["f", "g", "mcp__git__log", "apply_patch"].map((name) => ({ name, input_schema: SCHEMA })),
  },
  responses: {
    include: ["reasoning.encrypted_content"],
    reasoning: { summary: "auto" },
    tools: [
      ...["f", "g"].map((name) => ({ type: "function", name, parameters: SCHEMA })),
      { type: "custom", name: "apply_patch" },
      {
        type: "namespace",
        name: "mcp__git",
        description: "git",
        tools: [{ type: "function", name: "log", parameters: SCHEMA }],
      },
    ],
  },
};

export interface Recording {
  readonly name: string;
  readonly upstream: Protocol;
  readonly client: Protocol;
  readonly bytes: Buffer;
  /** The file with the expected stream. */
  readonly expected: URL;
}

/** Every recording for every client of another protocol. */
export function recordings(upstream: Protocol): Recording[] {
  const folder = new URL(`${upstream}/`, STREAMS);
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sse") && !file.endsWith(".expected.sse"))
    .flatMap((file) => {
      const name = file.slice(0, -".sse".length);
      const bytes = readFileSync(new URL(file, folder));
      return PROTOCOL_NAMES.filter((client) => client !== upstream).map((client) => ({
        name,
        upstream,
        client,
        bytes,
        expected: new URL(`${name}.${client}.expected.sse`, folder),
      }));
    });
}
