/**
 * Caches the lookup of one host name for all connections to it. The system's resolver runs in two of the few threads
 * that also write files, including the journal, and a lookup cannot be cancelled. With one for each connection, a slow
 * name server and many requests for one name would keep all other names waiting, for minutes after the requests failed.
 */
import type { LookupFunction } from "node:net";
import type { Clock } from "../time.ts";

/** How long a result is reused. */
const REMEMBERED_MS = 10_000;

/** How long connections wait for a new result if the name had addresses before. */
const WAIT_MS_MAX = 1_000;

/** The code of an error of the name servers, which says nothing about the name. */
export const RESOLVER_FAILED = "EAI_AGAIN";

/** As `node:dns` gives it. */
interface LookupAddress {
  readonly address: string;
  readonly family: number;
}

type LookupCallback = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/**
 * Asks the system for all addresses of a name: `lookup` of `node:dns`.
 * @param options `hints` as `node:net` gives them: on a machine without IPv6, no IPv6 addresses are asked for.
 */
export type AskSystem = (
  hostname: string,
  options: { readonly all: true; readonly hints: number | undefined },
  answer: LookupCallback,
) => void;

/**
 * Makes a lookup function for one name: one query at a time. Its result is cached unless it was an error. If the name
 * servers fail, or do not answer within a second, connections get the last addresses of the name. Each connection gets
 * another address first, as if it had asked name servers that rotate their answers.
 */
export function sharedLookup(clock: Pick<Clock, "monotonicMs" | "after">, ask: AskSystem): LookupFunction {
  let given = 0;
  let known: LookupAddress[] = [];
  let knownUntilMs = 0;
  let isAsking = false;
  /** Whether the running query takes longer than connections wait for it. */
  let isSlow = false;
  let waiting: LookupCallback[] = [];

  function giveAll(error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
    const all = waiting;
    waiting = [];
    for (const each of all) each(error, addresses);
  }

  function query(hostname: string, hints: number | undefined): void {
    isAsking = true;
    const cancel = clock.after(WAIT_MS_MAX, () => {
      if (known.length === 0) return;
      isSlow = true;
      giveAll(null, known);
    });
    ask(hostname, { all: true, hints }, (error, addresses) => {
      cancel();
      isAsking = false;
      isSlow = false;
      const keepsLast = error?.code === RESOLVER_FAILED && known.length > 0;
      if (!keepsLast) known = error ? [] : addresses;
      knownUntilMs = known.length > 0 ? clock.monotonicMs() + REMEMBERED_MS : 0;
      giveAll(keepsLast ? null : error, known);
    });
  }

  return (hostname, options, callback) => {
    const give: LookupCallback = (error, found) => {
      const addresses = found.length > 1 ? rotated(found, given++) : found;
      const [first] = addresses;
      if (options.all) callback(error, addresses);
      else callback(error, first?.address ?? "", first?.family);
    };
    if (isSlow || clock.monotonicMs() < knownUntilMs) {
      // Calls back asynchronously, as the system's own lookup does.
      queueMicrotask(() => give(null, known));
      return;
    }
    waiting.push(give);
    if (!isAsking) query(hostname, options.hints);
  };
}

/** The addresses, those of each family rotated by `steps`. The order of the families is kept: it is the system's choice. */
function rotated(addresses: readonly LookupAddress[], steps: number): LookupAddress[] {
  const families = Map.groupBy(addresses, ({ family }) => family);
  const places = new Map<number, number>();
  return addresses.map(({ family }) => {
    const same = families.get(family) as LookupAddress[];
    const place = places.get(family) ?? 0;
    places.set(family, place + 1);
    return same[(place + steps) % same.length] as LookupAddress;
  });
}
