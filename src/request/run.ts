/** A request on its way through its steps, and the parts of the gateway that serve it. */

import type { ReadBody } from "../accept/envelope.ts";
import type { FailedKeys } from "../accept/failed-keys.ts";
import type { AcceptedRequest } from "../accept/listener.ts";
import type { Reply } from "../accept/reply.ts";
import type { AdmitParts } from "../admit/admit.ts";
import type { Permit } from "../admit/permit.ts";
import type { OpenExchange } from "../convert/exchange.ts";
import type { AttemptRecord } from "../dispatch/ask.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Overload } from "../overload/overload.ts";
import type { DisconnectedStreams } from "../settle/disconnected-streams.ts";
import type { Journal } from "../settle/journal.ts";
import type { Observed } from "../settle/observed.ts";
import type { Settler } from "../settle/settler.ts";
import type { Store } from "../store/contract.ts";
import type { Refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import type { Settings } from "../values/settings.ts";
import type { Clock, Cohort } from "../values/time.ts";
import type { KeyUses } from "./key-uses.ts";
import type { Recorder, RequestRecord } from "./record.ts";
import type { Sealing } from "./sealing.ts";

export interface PipelineParts {
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly admit: AdmitParts;
  readonly store: Pick<Store, "extend">;
  readonly failedKeys: FailedKeys;
  readonly dispatcher: Dispatcher;
  readonly journal: Journal;
  readonly settler: Settler;
  readonly sealing: Sealing;
  readonly recorder: Recorder;
  readonly overload: Overload;
  /** Groups arriving requests and sent answers by turn of the event loop. */
  readonly cohort: Cohort;
  readonly keyUses: KeyUses;
  /** What was learned from completed replies. */
  readonly observed: Observed;
  /** Streams that are still read after their client has disconnected. */
  readonly disconnected: DisconnectedStreams;
  /** Aborts when running streams must end now: the deadline of a drain. */
  readonly cut: AbortSignal;
}

/** What is specific to an endpoint that sends requests to a model. */
export interface ModelEndpoint {
  /** Appended to the path of the upstream's protocol; undefined for the model path itself. */
  readonly pathSuffix: string | undefined;
  readonly read: (protocol: Protocol, body: Uint8Array) => Promise<ReadBody | Refusal>;
  readonly open: OpenExchange;
  /** What the upstreams' refusal means at this endpoint. */
  readonly refused: (refused: Refusal, attempts: readonly AttemptRecord[]) => Refusal;
}

/** One request on its way. */
export interface Run {
  readonly protocol: Protocol;
  readonly endpoint: ModelEndpoint;
  readonly request: AcceptedRequest;
  readonly reply: Reply;
  readonly record: RequestRecord;
  /** The model as the client typed it, once the body has been read; refusals name it. */
  model: string | undefined;
  permit: Permit | undefined;
  /** Whether the request asks for reasoning, by any of the members that do so. */
  asksToThink: boolean;
  /** Whether the client may read its answer again by its id, if the upstream keeps responses. */
  readsAgain: boolean;
  /** Maximum duration by the settings at its admission. */
  totalMs: number;
  /** Whether the client asks for a stream. */
  streamed: boolean;
  /** Attempts so far, for the bill. */
  attempts: readonly AttemptRecord[];
  settled: boolean;
  /** Removes the request from those in flight, once it is among them. */
  leave: (() => void) | undefined;
}
