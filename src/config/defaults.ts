/**
 * All defaults of the configuration and all limits on its size, with the unit in the name. The published schema, the
 * compiler and the documentation use these.
 */

import { TOOL_CALLS_PLAUSIBLE_MAX } from "../values/tokens/tool-calls.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const MIB = 1024 * 1024;

export const DEFAULTS = {
  /** Address on which clients are served, usually through a front. */
  listen: "127.0.0.1:8787",
  /** Health, metrics and the admin API. */
  admin: "127.0.0.1:8788",
  /** SQLite in a local folder; the journal is in `journal` inside that folder. */
  store: "embedded:./data",
  /** The journal's folder if the store is shared and has no local folder. */
  journalDir: "./data/journal",
  /** One fsync for all records that wait together. */
  journalFsync: "group",
  /** Largest size of the journal, which holds charges that the store has not acknowledged. */
  journalBytesMax: 1024 * MIB,
  /** Path of the pages for key owners. */
  consolePath: "/console",
  consoleSessionMs: 12 * 60 * MINUTE_MS,
  consoleInvitationMs: 15 * MINUTE_MS,
  /** Largest request body; a larger one gets 413. */
  bodyBytesMax: 32 * MIB,
  /** After SIGTERM: how long new requests are still served, with `connection: close`. */
  drainLameDuckMs: 5 * SECOND_MS,
  /** After the lame duck time: how long running streams may go on before they are ended properly. */
  drainDeadlineMs: 10 * MINUTE_MS,
  /** 99th percentile of the event loop delay at which a process is full. */
  overloadLoopDelayMs: 2 * SECOND_MS,
  /** Processes that serve clients. */
  workers: 1,
  /** Silence on a stream after which the client gets a heartbeat. */
  heartbeatMs: 10 * SECOND_MS,
  /**
   * Status when no upstream could answer. 403 does not fail the health checks of fronts (ARCHITECTURE.md promise 10).
   */
  upstreamUnavailableStatus: 403,
  /**
   * US dollars per account and day that are not charged for requests whose client disconnects before it gets anything.
   */
  leftAllowanceUsd: "0.50",
  /** Whether `Idempotency-Key` is used. */
  idempotencyEnabled: false,
  /** How long a charged request is remembered under its key, from its admission. */
  idempotencyKeepMs: 24 * 60 * MINUTE_MS,
  logLevel: "info",
  /** Share of requests that are traced. */
  traceSample: 0.01,
  traceServiceName: "tollgate",
  /** Interval at which finished spans are sent, as one batch. */
  traceExportEveryMs: 5 * SECOND_MS,
  /** From the first packet to a usable connection. */
  timeoutConnectMs: 3 * SECOND_MS,
  /** For streams: from sending the request to the first body byte. */
  timeoutFirstByteMs: 60 * SECOND_MS,
  /** For whole replies: from sending the request to the last body byte. */
  timeoutWholeMs: 10 * MINUTE_MS,
  /** Longest silence inside a body. */
  timeoutIdleMs: 120 * SECOND_MS,
  /** The whole request, including retries. */
  timeoutTotalMs: 20 * MINUTE_MS,
  /** Requests in flight to one upstream, per process. */
  upstreamConcurrency: 200,
  /** Requests that may wait for a slot at one upstream, per process, and how long each may wait. */
  queueMax: 100,
  queueWaitMs: 5 * SECOND_MS,
  /** Failures in a row after which an upstream is ejected. */
  healthFailures: 5,
  /** Or this percentage of failures, if the window has at least `healthOutcomesMin` outcomes. */
  healthFailurePercent: 50,
  healthOutcomesMin: 20,
  healthWindowMs: 30 * SECOND_MS,
  /** How long it is ejected at first. Doubles with each repetition, up to the maximum. */
  healthCoolDownMs: 5 * SECOND_MS,
  healthCoolDownMaxMs: 5 * MINUTE_MS,
  /** What happens to unknown members of a request body. */
  unknownMembers: "drop",
  /** `auto`: translated requests get what an upstream's prompt cache needs. */
  promptCache: "auto",
  /** What happens to an upstream's stream when its client has disconnected. */
  onClientGone: "abort",
  /** How long such a stream is still read at most if its model may have produced hidden reasoning. */
  clientGoneGraceMs: 10 * SECOND_MS,
  /** Output tokens of a model that names no maximum. Lowered to the context if that is smaller. */
  maxOutputTokens: 32_000,
  /** Output limit of a request that names none; never above the model's `max_output_tokens`. */
  defaultOutputTokens: 8_192,
  /** Body bytes that count as one input token in the estimate. */
  inputBytesPerToken: 3,
  /** The minimum that one image and one file add to the input estimate, in tokens. */
  imageTokens: 1_600,
  fileTokens: 3_000,
  /** Calls of each hosted tool that a hold covers, and that a request is charged for at most. */
  toolCallsHeld: 10,
  toolCallsMax: 50,
  /** How long before the end of a card a notice is sent. */
  cardEndsWithinMs: 24 * 60 * MINUTE_MS,
  /** Share of the traffic among routes of the same priority. */
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

/** Upper bounds. A configuration that exceeds one is refused, and the message names the number. */
export const LIMITS = {
  /** Bytes of the configuration file. */
  fileBytesMax: 4 * MIB,
  bodyBytes: { min: 1024, max: 1024 * MIB },
  journalBytes: { min: MIB, max: 1024 * 1024 * MIB },
  /** Node alone needs about 60 MiB. */
  memoryBytes: { min: 128 * MIB, max: 1024 * 1024 * 1024 * MIB },
  /** Bytes of a file that `file:/path` names. */
  secretBytesMax: 64 * 1024,
  /** Values in the file after its aliases are expanded; protects from alias bombs. */
  valuesMax: 200_000,
  /** YAML aliases (`*name`) that are expanded. */
  aliasesMax: 100,
  /** Nesting depth of mappings and lists. */
  depthMax: 32,
  /** Problems that are listed; the others are only counted. */
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
  /** Largest number of calls of one tool that is accepted for one request: src/values/tokens/tool-calls.ts. */
  toolCallsMax: TOOL_CALLS_PLAUSIBLE_MAX,
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
  /** Bytes of the JSON of a value that a rule sets. */
  valueBytesMax: 16 * 1024,
  /** Bytes of a system text that a rule adds. Its tokens are charged with each request. */
  systemTextBytesMax: 64 * 1024,
  sealingKeysMax: 8,
  /** Secrets that sign notices at the same time: more than one while they are rotated. */
  webhookSecretsMax: 4,
  webhookKeyBytesMin: 24,
  webhookKeyBytesMax: 64,
  consoleSessionMsMax: 30 * 24 * 60 * MINUTE_MS,
  /** Values of a claim that identify operators. */
  operatorsMax: 64,
  consoleInvitationMsMax: 7 * 24 * 60 * MINUTE_MS,
  cardEndsWithinMsMax: 90 * 24 * 60 * MINUTE_MS,
  trustProxyMax: 64,
  corsOriginsMax: 64,
  storeNodesMax: 32,
  /** Characters; shorter secrets can be guessed. */
  adminTokenCharsMin: 16,
  sealingKeyCharsMin: 32,
  /** For any timer: `setTimeout` wraps at 2^31 ms, and no wait needs more than a day. */
  timerMsMax: 24 * 60 * MINUTE_MS,
  /** A charge older than this is not settled again, so a longer memory could not be restored. */
  idempotencyKeepMsMax: 48 * 60 * MINUTE_MS,
  /** Longest run of a card: ten years. */
  cardMsMax: 3_660 * 24 * 60 * MINUTE_MS,
  tokensMax: 100_000_000,
  perMinuteMax: 1_000_000_000,
  concurrencyMax: 1_000_000,
  queueMax: 10_000,
  /** Longest wait in a queue: a client that waits longer has given up. */
  queueWaitMsMax: 2 * MINUTE_MS,
  /** A stream without a client costs money and a slot. To read streams to their end, use `on_client_gone: drain`. */
  clientGoneGraceMsMax: MINUTE_MS,
  healthCountMax: 10_000,
  workersMax: 64,
  /** A larger factor is more likely a misplaced decimal point than intended. */
  multiplierMax: 1_000,
} as const;
