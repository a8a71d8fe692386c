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
    rule: "IP:PORT such as 127.0.0.1:8787 or [::1]:8787, localhost:PORT, or unix:PATH",
  });

const workers = autoOrCount({
  description: "Processes that serve clients. auto: one per core. Any value other than 1 needs a store on Redis.",
  default: DEFAULTS.workers,
  max: LIMITS.workersMax,
});

export const configSchema = section(
  { description: "The configuration of Tollgate." },
  {
    listen: optional(
      address(
        "Address on which clients are served, usually through a front (nginx, Envoy). A PATH without a slash at its start is below the working folder.",
        {
          default: DEFAULTS.listen,
          examples: ["127.0.0.1:8787", "[::1]:8787", "unix:/run/tollgate/tollgate.sock"],
        },
      ),
    ),
    admin: optional(
      address(
        "Address of health checks, metrics and the admin API. Never make it public. Outside loopback it needs admin_token.",
        {
          default: DEFAULTS.admin,
          examples: ["127.0.0.1:8788"],
        },
      ),
    ),
    admin_token: optional(
      secret({
        description: `Bearer token of the admin API: at least ${LIMITS.adminTokenCharsMin} visible ASCII characters. If it is missing, one is generated and kept in the data folder.`,
      }),
    ),
    store: optional(
      secret({
        description:
          "The store of money, keys and entitlements: embedded:DIR (SQLite in a folder), or Redis 7.0 or later: redis://, redis-sentinel://, redis-cluster://, or with TLS rediss://, rediss-sentinel://, rediss-cluster://.",
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
        { description: "Local files to which a charge is written before it goes to the store." },
        {
          dir: optional(
            text({
              description:
                "The journal's folder. Default: `journal` in the embedded store's folder, or ./data/journal.",
              pattern: ".+",
              rule: "the path of a folder",
            }),
          ),
          fsync: optional(
            oneOf(
              {
                description: "group: one fsync for all records that wait under load; always: an fsync for every write.",
                default: DEFAULTS.journalFsync,
              },
              ["group", "always"],
            ),
          ),
          bytes_max: optional(
            size({
              description: "Largest size of the journal. New requests are refused when it is nearly full.",
              default: formatSize(DEFAULTS.journalBytesMax),
              bounds: LIMITS.journalBytes,
            }),
          ),
        },
      ),
    ),
    sealing_keys: optional(
      listOf(
        {
          description: `Secrets for what clients carry for the gateway, such as reasoning and ids: at least ${LIMITS.sealingKeyCharsMin} characters each. The first one seals; each of them opens. Required with a shared store.`,
          max: LIMITS.sealingKeysMax,
        },
        secret({ description: `At least ${LIMITS.sealingKeyCharsMin} characters.` }),
      ),
    ),
    default_plan: optional(plainName("The base plan of new accounts. Required if there are several plans.")),
    trust_proxy: optional(
      listOf(
        {
          description:
            "Peers whose forwarding headers are trusted: CIDR blocks, addresses, and unix for a Unix socket.",
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
        description:
          "Web server to which requests for paths outside the API are forwarded. Default: the built-in page.",
        pattern: "https?://.+",
        rule: "an http:// or https:// URL",
        examples: ["http://127.0.0.1:3000"],
      }),
    ),
    console: optional(consoleSection),
    body_bytes_max: optional(
      size({
        description: "Largest request body.",
        default: formatSize(DEFAULTS.bodyBytesMax),
        bounds: LIMITS.bodyBytes,
      }),
    ),
    drain: optional(
      section(
        { description: "Graceful shutdown after SIGTERM." },
        {
          lame_duck: after("How long new requests are still served, with connection: close.", DEFAULTS.drainLameDuckMs),
          deadline: after(
            "How long running requests may go on after that. Then streams are ended properly, and requests without an answer get 503.",
            DEFAULTS.drainDeadlineMs,
          ),
        },
      ),
    ),
    overload: optional(
      section(
        {
          description:
            "Limits at which one process is full. Near them requests are refused, those of the busiest accounts first.",
        },
        {
          in_flight_max: optional(
            count({
              description: "Requests in flight. Default: twice what the upstreams take together, at least 1000.",
              min: 1,
              max: LIMITS.concurrencyMax,
            }),
          ),
          loop_delay: after("Event loop delay, 99th percentile.", DEFAULTS.overloadLoopDelayMs),
          memory: optional(
            size({
              description:
                "Resident memory. Default: the memory limit of the container, or the memory of the machine. A quarter of it is for request bodies above 64 KiB.",
              bounds: LIMITS.memoryBytes,
            }),
          ),
        },
      ),
    ),
    workers: optional(workers),
    heartbeat: after(
      "Silence on a stream after which the client gets a heartbeat. Heartbeats begin with the first event of the answer: " +
        "before it, a front sees nothing for up to first_byte of each upstream that is tried.",
      DEFAULTS.heartbeatMs,
    ),
    upstream_unavailable_status: optional(
      oneOf(
        {
          description: "Status of the answer when no upstream could answer.",
          default: DEFAULTS.upstreamUnavailableStatus,
        },
        [403, 503],
      ),
    ),
    client_gone_allowance: optional(
      usd({
        description:
          "US dollars per account and day. Up to this amount, a request whose client disconnects before it gets anything is not charged; beyond it, it is. 0: it is always charged.",
        default: DEFAULTS.leftAllowanceUsd,
        examples: ["0.50", "0"],
      }),
    ),
    idempotency: optional(
      section(
        { description: "Requests that clients retry with the same Idempotency-Key." },
        {
          enabled: optional(
            flag({ description: "Whether the Idempotency-Key header is used.", default: DEFAULTS.idempotencyEnabled }),
          ),
          keep: after(
            "How long a charged request is remembered, from its admission.",
            DEFAULTS.idempotencyKeepMs,
            LIMITS.idempotencyKeepMsMax,
          ),
        },
      ),
    ),
    cors_origins: optional(
      listOf(
        {
          description: "Origins whose web pages may call the API.",
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
            oneOf({ description: "The lowest level that is written.", default: DEFAULTS.logLevel }, [
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
        { description: "OpenTelemetry traces, sent as OTLP over HTTP. Default: none." },
        {
          endpoint: text({
            description: "The collector's URL for traces.",
            pattern: "https?://.+",
            rule: "an http:// or https:// URL, such as http://127.0.0.1:4318/v1/traces",
            examples: ["http://127.0.0.1:4318/v1/traces"],
          }),
          headers: optional(
            mapOf(
              {
                description: "Headers that are sent to the collector.",
                max: LIMITS.headersPerUpstreamMax,
                names: HEADER_NAMES,
              },
              secret({ description: "The header's value." }),
            ),
          ),
          sample: optional(
            positive({ description: "Share of requests that are traced.", default: DEFAULTS.traceSample, max: 1 }),
          ),
          service_name: optional(
            text({
              description: "The service's name in the traces.",
              default: DEFAULTS.traceServiceName,
              pattern: "[A-Za-z0-9][A-Za-z0-9._-]{0,62}",
              rule: "a name of at most 63 letters, digits, dots, hyphens and underscores",
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
        { description: "Signed webhooks that report events of accounts, keys and upstreams. Default: none are sent." },
        {
          url: secret({
            description: "The receiver's URL. https, unless it is on this machine or allow_http is set.",
            examples: ["https://hooks.example/tollgate"],
          }),
          secrets: listOf(
            {
              description: `Secrets that notices are signed with: whsec_ and ${LIMITS.webhookKeyBytesMin} to ${LIMITS.webhookKeyBytesMax} bytes in base64. Several only while one replaces another.`,
              max: LIMITS.webhookSecretsMax,
            },
            secret({
              description: "whsec_ followed by 24 to 64 bytes in base64.",
              examples: ["$" + "{TOLLGATE_WEBHOOK_SECRET}", "file:/run/webhook-secret"],
            }),
          ),
          kinds: optional(
            listOf(
              { description: "Kinds of notices that are sent. Default: all.", max: NOTICE_KINDS.length },
              oneOf({ description: "A kind of notice." }, NOTICE_KINDS),
            ),
          ),
          balance_below: optional(
            usd({
              description:
                "Sends a notice when a balance falls below this many US dollars. An account can override it.",
              examples: ["5.00"],
            }),
          ),
          card_ends_within: after(
            "How long before the end of a time card a notice is sent. A short card is reported in its last quarter.",
            DEFAULTS.cardEndsWithinMs,
            LIMITS.cardEndsWithinMsMax,
          ),
          allow_http: optional(
            flag({ description: "Whether notices may be sent to another machine unencrypted.", default: false }),
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
