/**
 * Runs sessions through a gateway and directly at the vendor, and measures how much of their input was read from a
 * cache.
 */
import type { Protocol } from "../../../../src/values/protocol.ts";
import { ownConfig, yamlOf } from "../../../rig/config.ts";
import { type ConfigPlaces, startGatewayHere } from "../../../rig/gateway.ts";
import { startRecordedSession } from "./recorded.ts";
import { REQUESTS_PER_SESSION, startSession, type Target } from "./sessions.ts";
import { type CachingVendor, type InputCount, type Json, startCachingVendor } from "./vendor.ts";

export const PROTOCOL_LIST = ["chat", "messages", "responses"] as const satisfies readonly Protocol[];

/** `auto`: the gateway adds what the cache needs; `client`: it adds nothing. */
export const WAYS = ["auto", "client"] as const;
type Way = (typeof WAYS)[number];

/** Whose sessions are measured: those of a script or of recorded clients. */
const KINDS = { scripted: startSession, recorded: startRecordedSession } as const;
export type Kind = keyof typeof KINDS;

/** Concurrent sessions of the same agent; a single session would never have to share a machine. */
const SESSIONS = 3;
/** Seconds between two requests of any session, so each session sends about 14 per minute. */
const PAUSE_S = 1.4;

export interface Measured extends InputCount {
  /** Share of the input that was read from a cache. */
  readonly share: number;
  /** The same share, from the usage that the client received. */
  readonly toldShare: number;
  readonly bodies: readonly Json[];
}

/** A separate model for each measurement, because caches are per model. */
const modelOf = (client: Protocol, upstream: Protocol, way: Way, kind: Kind) =>
  `${kind}-${client}-on-${upstream}-${way}`;

/** A model per protocol and way, all on one vendor. */
function config(places: ConfigPlaces, vendor: CachingVendor): string {
  const price = '{input: "1", cached_input: "0.1", cache_write: "1.25", output: "10"}';
  const model = (name: string, upstream: Protocol, way: Way) => {
    const native = upstream === "chat" ? ", openai_native: true" : "";
    const capabilities = `{prompt_cache: ${way}${native}}`;
    return `  ${name}: {plans: [free], price: ${price}, context_tokens: 200000, capabilities: ${capabilities}, routes: [{upstream: up-${upstream}}]}`;
  };
  const models = PROTOCOL_LIST.flatMap((client) =>
    PROTOCOL_LIST.flatMap((upstream) =>
      WAYS.flatMap((way) =>
        (Object.keys(KINDS) as Kind[]).map((kind) => model(modelOf(client, upstream, way, kind), upstream, way)),
      ),
    ),
  );
  return `${yamlOf(ownConfig(places))}upstreams:
${PROTOCOL_LIST.map((protocol) => `  up-${protocol}: {protocol: ${protocol}, base_url: ${JSON.stringify(vendor.url)}, api_key: canary}`).join("\n")}
models:
${models.join("\n")}
groups:
  money: {kind: pay_per_use, models: ["*"]}
`;
}

/** A gateway, and behind it the vendor, which can also be called directly. */
export interface Setting {
  /** Runs the sessions directly at the vendor. */
  straight(protocol: Protocol, kind: Kind): Promise<Measured>;
  /** Runs the sessions through the gateway, in one direction. */
  through(client: Protocol, upstream: Protocol, way: Way, kind: Kind): Promise<Measured>;
  close(): Promise<void>;
}

/** Starts both; only one measurement runs at a time. */
export async function startSetting(): Promise<Setting> {
  const vendor = await startCachingVendor();
  const here = await startGatewayHere({ config: (places) => config(places, vendor) });
  const { key } = await here.account({ usd: "1000" });
  const direct = vendor.url.slice(0, -"/v1".length);
  return {
    straight: (protocol, kind) =>
      measured(protocol, kind, vendor, { url: direct, key: "canary", model: `${kind}-straight-${protocol}` }),
    through: (client, upstream, way, kind) =>
      measured(client, kind, vendor, { url: here.url, key, model: modelOf(client, upstream, way, kind) }),
    async close() {
      await here.close();
      await vendor.close();
    },
  };
}

/** Runs the sessions of one client against one target, whose model has empty caches. */
async function measured(client: Protocol, kind: Kind, vendor: CachingVendor, target: Target): Promise<Measured> {
  const before = vendor.seen.length;
  const sessions = Array.from({ length: SESSIONS }, (_, nth) => KINDS[kind](client, nth, target));
  const told = { cached: 0, input: 0 };
  for (let request = 0; request < REQUESTS_PER_SESSION; request++) {
    for (const session of sessions) {
      const { cached, input } = await session.next();
      told.cached += cached;
      told.input += input;
      vendor.pass(PAUSE_S);
    }
  }
  const seen = vendor.seen.slice(before);
  const sum = (pick: (count: InputCount) => number) => seen.reduce((total, { count }) => total + pick(count), 0);
  const [read, written, fresh] = [sum((one) => one.read), sum((one) => one.written), sum((one) => one.fresh)];
  const bodies = seen.map(({ body }) => body);
  return { read, written, fresh, share: read / (read + written + fresh), toldShare: told.cached / told.input, bodies };
}
