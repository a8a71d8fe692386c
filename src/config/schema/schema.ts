/** The whole of `tollgate.yaml` as a schema; `tollgate.schema.json` is generated from it. */

import { NOTICE_KINDS } from "../../values/settings.ts";
import { formatSize } from "../compile/units.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import { cards, groups, models, plans } from "./catalog.ts";
import { consoleSection } from "./console.ts";
import { redis } from "./redis.ts";
import { HEADER_NAMES } from "./rules.ts";
import { after, upstream } from "./upstream.ts";
import {
  autoOrCount,
  count,
  flag,
  listOf,
  mapOf,
  oneOf,
  optional,
  PLAIN_NAMES,
  plainName,
  positive,
  type Static,
  secret,
  section,
  size,
  text,
  usd,
} from "./words.ts";

const address = (description: string, rest: { default: string; examples: string[] }) =>
  text({
    description,
    ...rest,
    pattern: "(?:unix:.+|(?:[0-9.]+|localhost|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5})",
    rule: "IP:PORT such as 127.0.0.1:8787 or [::1]:8787, localhost:PORT, or unix:/path",
  });

const workers = autoOrCount({
  description: "Processes that serve clients; auto: one per core. More than one needs a store on Redis.",
  default: DEFAULTS.workers,
  max: LIMITS.workersMax,
});

export const configSchema = section(
  { description: "The configuration of Tollgate." },
  {
    listen: optional(
      address("Where clients, that is the front, connect.", {
        default: DEFAULTS.listen,
        examples: ["127.0.0.1:8787", "[::1]:8787", "unix:/run/tollgate/tollgate.sock"],
      }),
    ),
    admin: optional(
      address("Health, metrics and the admin API; never public; beyond loopback only with admin_token.", {
        default: DEFAULTS.admin,
        examples: ["127.0.0.1:8788"],
      }),
    ),
    admin_token: optional(
      secret({ description: "What the admin API asks for. With an embedded store one is made when this is missing." }),
    ),
    store: optional(
      secret({
        description: "Where money, keys and entitlements are kept. Redis 7.0 or later.",
        default: DEFAULTS.store,
        examples: [
          "embedded:./data",
          "redis://user:password@127.0.0.1:6379/0",
          "redis-cluster://10.0.0.1:6379,10.0.0.2:6379",
          "redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/tollgate",
          "rediss://user:password@redis.example:6379/0",
        ],
      }),
    ),
    redis: optional(redis),
    journal: optional(
      section(
        { description: "The local file in which a charge is written before the store is told." },
        {
          dir: optional(
            text({
              description: "Its folder. Default: `journal` in the embedded store's folder, else ./data/journal.",
              pattern: ".+",
              rule: "the path of a folder",
            }),
          ),
          fsync: optional(
            oneOf({ description: "group: one fsync for all that wait.", default: DEFAULTS.journalFsync }, [
              "group",
              "always",
            ]),
          ),
          bytes_max: optional(size({ description: "Its room.", default: formatSize(DEFAULTS.journalBytesMax) })),
        },
      ),
    ),
    sealing_keys: optional(
      listOf(
        { description: "The first seals, all open. Required with a shared store.", max: LIMITS.sealingKeysMax },
        secret({ description: `At least ${LIMITS.sealingKeyCharsMin} characters.` }),
      ),
    ),
    default_plan: optional(plainName("The base plan of new accounts. Needed when there are several plans.")),
    trust_proxy: optional(
      listOf(
        {
          description: "Whose forwarding headers are believed: CIDR blocks, addresses, and unix for a unix socket.",
          default: [],
          max: LIMITS.trustProxyMax,
          examples: [["127.0.0.1/32", "unix"]],
        },
        text({
          description: "A CIDR block, an address, or unix.",
          pattern: "(?:unix|[0-9A-Fa-f:.]+(?:/[0-9]{1,3})?)",
          rule: "a CIDR block such as 10.0.0.0/8, an address, or unix",
        }),
      ),
    ),
    site: optional(
      text({
        description: "Where paths outside the API are passed on to. Default: the built-in page.",
        pattern: "https?://.+",
        rule: "an http:// or https:// URL",
        examples: ["http://127.0.0.1:3000"],
      }),
    ),
    console: optional(consoleSection),
    body_bytes_max: optional(
      size({ description: "Largest request body.", default: formatSize(DEFAULTS.bodyBytesMax) }),
    ),
    drain: optional(
      section(
        { description: "What happens after SIGTERM." },
        {
          lame_duck: after("New requests are still served, with connection: close.", DEFAULTS.drainLameDuckMs),
          deadline: after("When streams that still run are ended properly.", DEFAULTS.drainDeadlineMs),
        },
      ),
    ),
    overload: optional(
      section(
        {
          description: "Where one process is full; near it requests are refused, those of the busiest accounts first.",
        },
        {
          in_flight_max: optional(
            count({
              description: "Requests at once. Default: twice what the upstreams take, at least 1000.",
              min: 1,
              max: LIMITS.concurrencyMax,
            }),
          ),
          loop_delay: after("Delay of the event loop, 99th percentile.", DEFAULTS.overloadLoopDelayMs),
          memory: optional(
            size({
              description:
                "Resident memory. Default: the container's or the machine's. A quarter is room for request bodies of more than 64 KiB.",
            }),
          ),
        },
      ),
    ),
    workers: optional(workers),
    heartbeat: after(
      "Silence on a stream after which the client gets a sign of life, from the first event of the answer on. " +
        "Until then a front sees none for up to first_byte of each upstream that is tried.",
      DEFAULTS.heartbeatMs,
    ),
    upstream_unavailable_status: optional(
      oneOf(
        {
          description: "What a client is answered when no upstream could.",
          default: DEFAULTS.upstreamUnavailableStatus,
        },
        [403, 503],
      ),
    ),
    client_gone_allowance: optional(
      usd({
        description:
          "US dollars per account and day that requests may cost whose client leaves before it is given anything; beyond it such a client pays. 0: always.",
        default: DEFAULTS.leftAllowanceUsd,
        examples: ["0.50", "0"],
      }),
    ),
    idempotency: optional(
      section(
        { description: "Requests that clients send again under the same Idempotency-Key." },
        {
          enabled: optional(
            flag({ description: "Whether the header is heeded.", default: DEFAULTS.idempotencyEnabled }),
          ),
          keep: after("How long a charged request is remembered.", DEFAULTS.idempotencyKeepMs),
        },
      ),
    ),
    cors_origins: optional(
      listOf(
        {
          description: "Origins whose pages may call the API from a browser.",
          default: [],
          max: LIMITS.corsOriginsMax,
        },
        text({
          description: "An origin.",
          pattern: "https?://[^/]+",
          rule: "an origin such as https://chat.example, without a path",
        }),
      ),
    ),
    log: optional(
      section(
        { description: "The log on standard output." },
        {
          level: optional(
            oneOf({ description: "What is written.", default: DEFAULTS.logLevel }, [
              "silent",
              "error",
              "warn",
              "info",
              "debug",
            ]),
          ),
        },
      ),
    ),
    traces: optional(
      section(
        { description: "Traces by OpenTelemetry, as OTLP over HTTP. Without this section there are none." },
        {
          endpoint: text({
            description: "Where the collector takes traces.",
            pattern: "https?://.+",
            rule: "an http:// or https:// URL, such as http://127.0.0.1:4318/v1/traces",
            examples: ["http://127.0.0.1:4318/v1/traces"],
          }),
          headers: optional(
            mapOf(
              { description: "Sent to the collector.", max: LIMITS.headersPerUpstreamMax, names: HEADER_NAMES },
              secret({ description: "The header's value." }),
            ),
          ),
          sample: optional(
            positive({ description: "Share of the requests that are traced.", default: DEFAULTS.traceSample, max: 1 }),
          ),
          service_name: optional(
            text({
              description: "The service's name in the traces.",
              default: DEFAULTS.traceServiceName,
              pattern: "[A-Za-z0-9][A-Za-z0-9._-]{0,62}",
              rule: "a name of at most 63 letters, digits, points, hyphens and underscores",
            }),
          ),
          propagate: optional(
            listOf(
              { description: "Upstreams that get a traceparent header.", default: [], max: LIMITS.upstreamsMax },
              plainName("An upstream's name."),
            ),
          ),
        },
      ),
    ),
    notices: optional(
      section(
        { description: "Whom the gateway tells of what happens, by signed webhooks. Without this section nobody." },
        {
          url: secret({
            description: "Where they are sent; https unless it is on this machine.",
            examples: ["https://hooks.example/tollgate"],
          }),
          secrets: listOf(
            {
              description: "What they are signed with; several while one takes the place of another.",
              max: LIMITS.webhookSecretsMax,
            },
            secret({
              description: "whsec_ and 24 to 64 bytes in base64.",
              examples: ["$" + "{TOLLGATE_WEBHOOK_SECRET}", "file:/run/webhook-secret"],
            }),
          ),
          kinds: optional(
            listOf(
              { description: "What is told; everything when left out.", max: NOTICE_KINDS.length },
              oneOf({ description: "A kind of notice." }, NOTICE_KINDS),
            ),
          ),
          balance_below: optional(
            usd({
              description: "A balance that goes below this many US dollars is told of; an account may have its own.",
              examples: ["5.00"],
            }),
          ),
          card_ends_within: after("How long before its end a time card is told of.", DEFAULTS.cardEndsWithinMs),
          allow_http: optional(
            flag({ description: "Whether they may go to another machine unencrypted.", default: false }),
          ),
        },
      ),
    ),
    upstreams: mapOf({ description: "Model servers.", max: LIMITS.upstreamsMax, names: PLAIN_NAMES }, upstream),
    plans,
    models,
    groups,
    cards: optional(cards),
  },
);

/** A configuration as written: what the schema accepts. */
export type ConfigFile = Static<typeof configSchema>;
