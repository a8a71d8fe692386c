/**
 * Every default of the configuration and every limit on its size, once, with the unit in the name.
 * The published schema, the compiler and the documentation read these.
 */

import { TOOL_CALLS_BELIEVED_MAX } from "../values/tokens/tool-calls.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const MIB = 1024 * 1024;

export const DEFAULTS = {
  /** Where clients (that is, the front) connect. */
  listen: "127.0.0.1:8787",
  /** Health, metrics and the admin API. */
  admin: "127.0.0.1:8788",
  /** SQLite in a folder beside the process; the journal goes into `journal` inside that folder. */
  store: "embedded:./data",
  /** Where the journal is when the store is shared and has no folder here. */
  journalDir: "./data/journal",
  /** One fsync for all records that wait together. */
  journalFsync: "group",
  /** Room for charges that the store has not acknowledged. */
  journalBytesMax: 1024 * MIB,
  /** Where the pages for owners of keys are. */
  consolePath: "/console",
  consoleSessionMs: 12 * 60 * MINUTE_MS,
  consoleInvitationMs: 15 * MINUTE_MS,
  /** Largest request body; a longer one is 413. */
  bodyBytesMax: 32 * MIB,
  /** After SIGTERM: how long new requests are still served, with `connection: close`. */
  drainLameDuckMs: 5 * SECOND_MS,
  /** After SIGTERM: when streams that still run are ended properly. */
  drainDeadlineMs: 10 * MINUTE_MS,
  /** 99th percentile of the event loop's delay at which a process is full. */
  overloadLoopDelayMs: 2 * SECOND_MS,
  /** Processes that serve clients. */
  workers: 1,
  /** Silence on a stream after which the client gets a heartbeat. */
  heartbeatMs: 10 * SECOND_MS,
  /**
   * What a client is answered when no upstream could: 403 keeps front health checks quiet (ARCHITECTURE.md promise 10).
   */
  upstreamUnavailableStatus: 403,
  /** US dollars that an account may cost in a day by requests that it leaves before it is given anything. */
  leftAllowanceUsd: "0.50",
  /** Whether `Idempotency-Key` is heeded. */
  idempotencyEnabled: false,
  /** How long a charged request is remembered under its key, from its admission on. */
  idempotencyKeepMs: 24 * 60 * MINUTE_MS,
  logLevel: "info",
  /** Share of the requests that are traced. */
  traceSample: 0.01,
  traceServiceName: "tollgate",
  /** Finished spans are sent together this often. */
  traceExportEveryMs: 5 * SECOND_MS,
  /** From the first packet to a usable connection. */
  timeoutConnectMs: 3 * SECOND_MS,
  /** Streams: from the request sent to the first body byte. */
  timeoutFirstByteMs: 60 * SECOND_MS,
  /** Whole replies: from the request sent to the last body byte. */
  timeoutWholeMs: 10 * MINUTE_MS,
  /** Longest silence inside a body. */
  timeoutIdleMs: 120 * SECOND_MS,
  /** A request's whole life, retries included. */
  timeoutTotalMs: 20 * MINUTE_MS,
  /** Requests in flight to one upstream, per process. */
  upstreamConcurrency: 200,
  /** Requests that may wait for a place at one upstream, per process, and how long each does. */
  queueMax: 100,
  queueWaitMs: 5 * SECOND_MS,
  /** Failures in a row after which an upstream is passed over. */
  healthFailures: 5,
  /** Or this share of failures, in percent, among at least so many outcomes within the window. */
  healthFailurePercent: 50,
  healthOutcomesMin: 20,
  healthWindowMs: 30 * SECOND_MS,
  /** For how long at first; doubles with each repetition up to the longest. */
  healthCoolDownMs: 5 * SECOND_MS,
  healthCoolDownMaxMs: 5 * MINUTE_MS,
  /** What is done with a body's unknown members. */
  unknownMembers: "drop",
  /** Whether translated requests get what an upstream's prompt cache needs. */
  promptCache: "auto",
  /** What is done with an upstream's stream when its client has left. */
  onClientGone: "abort",
  /** How long such a stream is read on at most where its model may have thought out of sight. */
  clientGoneGraceMs: 10 * SECOND_MS,
  /** Output tokens of a model that names no maximum; lowered to the context where that is smaller. */
  maxOutputTokens: 32_000,
  /** Output limit of a request that names none; never above the model's `max_output_tokens`. */
  defaultOutputTokens: 8_192,
  /** Body bytes that count as one input token in the estimate. */
  inputBytesPerToken: 3,
  /** The least that one image, and one file, adds to the input estimate, in tokens. */
  imageTokens: 1_600,
  fileTokens: 3_000,
  /** Calls of each hosted tool that a hold covers, and that a request is charged for at most. */
  toolCallsHeld: 10,
  toolCallsMax: 50,
  /** How long before its end a card is told of. */
  cardEndsWithinMs: 24 * 60 * MINUTE_MS,
  /** Share of the traffic among routes of one priority. */
  routeWeight: 1,
  /** Lower is tried first. */
  routePriority: 0,
  /** Requests in flight of an account in a group that names no limit (promise 10). */
  concurrency: 100,
  limitsPerKey: false,
  multiplier: "1.0",
  cardStarts: "at_redemption",
  /** Where a rule adds its system text. */
  systemTextAt: "end",
} as const;

/** Upper bounds; a configuration beyond one of them is refused, and the message names the number. */
export const LIMITS = {
  /** Bytes of the configuration file. */
  fileBytesMax: 4 * MIB,
  /** Bytes of a file named by `file:/path`. */
  secretBytesMax: 64 * 1024,
  /** Values in the file once its aliases are written out: what makes an alias bomb harmless. */
  valuesMax: 200_000,
  /** YAML aliases (`*name`) that are followed. */
  aliasesMax: 100,
  /** Mappings and lists inside each other. */
  depthMax: 32,
  /** Problems that are reported; the rest is counted. */
  problemsMax: 500,
  upstreamsMax: 100,
  modelsMax: 1_000,
  plansMax: 100,
  groupsMax: 100,
  cardsMax: 100,
  routesPerModelMax: 16,
  tiersPerPriceMax: 8,
  stepsPerPriceMax: 8,
  toolsPerPriceMax: 32,
  /** Calls of one tool that are believed of one request at all: src/values/tokens/tool-calls.ts. */
  toolCallsMax: TOOL_CALLS_BELIEVED_MAX,
  headersPerUpstreamMax: 32,
  passedMembersMax: 64,
  answersAsMax: 32,
  optionsPerPriceMax: 32,
  modelsPerGroupMax: 1_000,
  /** Rules of one group, model or upstream; an attempt has three such lists. */
  rulesMax: 32,
  /** Parameters that one rule names. */
  membersPerRuleMax: 32,
  headersPerRuleMax: 16,
  /** JSON of a value that a rule sets. */
  valueBytesMax: 16 * 1024,
  /** A system text that a rule adds; its tokens are paid for with each request. */
  systemTextBytesMax: 64 * 1024,
  sealingKeysMax: 8,
  /** Secrets that sign notices at once: one, and those that come and go while it is changed. */
  webhookSecretsMax: 4,
  webhookKeyBytesMin: 24,
  webhookKeyBytesMax: 64,
  consoleSessionMsMax: 30 * 24 * 60 * MINUTE_MS,
  /** Values of a claim that make operators. */
  operatorsMax: 64,
  consoleInvitationMsMax: 7 * 24 * 60 * MINUTE_MS,
  cardEndsWithinMsMax: 90 * 24 * 60 * MINUTE_MS,
  trustProxyMax: 64,
  corsOriginsMax: 64,
  storeNodesMax: 32,
  /** Characters; shorter secrets can be guessed. */
  adminTokenCharsMin: 16,
  sealingKeyCharsMin: 32,
  /** Any timer: `setTimeout` wraps at 2^31 ms, and nobody waits for a day. */
  timerMsMax: 24 * 60 * MINUTE_MS,
  /** A charge older than this is not settled again, so that nothing could bring the memory of it back. */
  idempotencyKeepMsMax: 48 * 60 * MINUTE_MS,
  /** How long a card may last: ten years. */
  cardMsMax: 3_660 * 24 * 60 * MINUTE_MS,
  tokensMax: 100_000_000,
  perMinuteMax: 1_000_000_000,
  concurrencyMax: 1_000_000,
  queueMax: 10_000,
  /** Longest wait in a queue: a client that waits longer has given up. */
  queueWaitMsMax: 2 * MINUTE_MS,
  /** A stream that nobody reads costs money and a place; who wants its end says so with `on_client_gone: drain`. */
  clientGoneGraceMsMax: MINUTE_MS,
  healthCountMax: 10_000,
  workersMax: 64,
  /** Above this a retyped decimal point is likelier than a real factor. */
  multiplierMax: 1_000,
} as const;
