/** The translations of requests in both ways, judged member by member. */
import type { RouteFacts } from "../../../src/convert/exchange.ts";
import { type Capabilities, EFFORTS } from "../../../src/values/catalog.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../src/values/protocol.ts";
import { routeTo } from "../../unit/convert/request/translate.ts";
import { Judge, type Judged } from "./judge.ts";
import { RequestTrial } from "./sent.ts";
import { type ObjectForm, readSdkTypes } from "./walk.ts";

/** The capabilities of the best server: everything that its protocol can express is sent. */
const ABLE: Partial<Capabilities> = {
  efforts: EFFORTS,
  thinking: "both",
  customTools: true,
  reasoningContent: "roundtrip",
  openaiNative: true,
  midSystem: true,
  prefill: true,
};

/** The capabilities of the poorest server. */
const POOR: Partial<Capabilities> = {
  efforts: [],
  sampling: "none",
  structuredOutputs: false,
  customTools: false,
  reasoningContent: "off",
  stop: "emulate",
};

export interface Direction {
  readonly client: Protocol;
  readonly upstream: Protocol;
  readonly judged: readonly Judged[];
}

const types = readSdkTypes();

/** The root types of a client's requests. Beta versions have additional members. */
const ROOTS: Readonly<Record<Protocol, readonly ObjectForm[]>> = {
  chat: rootsOf("chat request"),
  messages: [...rootsOf("messages beta request"), ...rootsOf("messages request")],
  responses: rootsOf("responses request"),
};

/** The root types with a name. */
export function rootsOf(name: keyof typeof types): readonly ObjectForm[] {
  const root = types[name];
  return "members" in root ? [root] : root;
}

/** The six directions on routes to the best server. */
export function judgedRequests(): readonly Direction[] {
  return directions((upstream) => routeTo(upstream, ABLE));
}

/** The six directions on routes to the poorest server. */
export function judgedOnPoorRoutes(): readonly Direction[] {
  return directions((upstream) => routeTo(upstream, POOR));
}

function directions(route: (upstream: Protocol) => RouteFacts): readonly Direction[] {
  return PROTOCOL_NAMES.flatMap((client) =>
    PROTOCOL_NAMES.filter((upstream) => upstream !== client).map((upstream) => ({
      client,
      upstream,
      judged: unique(ROOTS[client].flatMap((root) => new Judge(new RequestTrial(client, route(upstream))).root(root))),
    })),
  );
}

/** One row for each path. If two root types reach it, the row has the results of both. */
export function unique(judged: readonly Judged[]): readonly Judged[] {
  const rows = new Map<string, Judged>();
  for (const row of judged) {
    const known = rows.get(row.path);
    const words = known ? [...new Set([...known.words, ...row.words])] : row.words;
    rows.set(row.path, { ...row, words, proofs: (known?.proofs ?? 0) + row.proofs, fault: known?.fault ?? row.fault });
  }
  return [...rows.values()];
}
