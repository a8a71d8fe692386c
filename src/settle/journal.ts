/**
 * The journal's interface: a charge exists from the moment `final` resolves. The implementation here keeps records in
 * memory only and claims no crash safety; the durable one takes its place behind the same four calls.
 */
import type { SettleAsk } from "../store/contract.ts";
import type { RequestId } from "../values/request-id.ts";

/** What is known of a request when it goes upstream. */
export interface OpenRecord {
  readonly requestId: RequestId;
  readonly tag: string;
  readonly group: string;
  readonly model: string;
  readonly hold: string;
  readonly storeTimeMs: number;
}

export interface Journal {
  /** A request is about to go upstream. */
  open(record: OpenRecord): void;
  /** What a running stream has produced so far; an orphan is charged from its last checkpoint. */
  checkpoint(requestId: RequestId, soFar: SettleAsk): void;
  /** The charge. Resolves when it is durable; nothing terminal goes to the client before. */
  final(charge: SettleAsk): Promise<void>;
  /** The store has the charge. */
  ack(requestId: RequestId): void;
  /** Records without an ACK, for readiness and the metric `journal_unsettled`. */
  unsettled(): number;
  close(): Promise<void>;
}

/** A journal that forgets when the process ends. */
export function createMemoryJournal(): Journal {
  const open = new Set<RequestId>();
  return {
    open: (record) => void open.add(record.requestId),
    checkpoint() {},
    final: async (charge) => void open.add(charge.requestId),
    ack: (requestId) => void open.delete(requestId),
    unsettled: () => open.size,
    close: async () => {},
  };
}
