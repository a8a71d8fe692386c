/**
 * The site's name, looked up once for all requests of a while. The system's resolver works in the few threads that also
 * write files, the journal's among them: a slow name server and a crowd of visitors must not take them all.
 */
import { type LookupAddress, lookup } from "node:dns";
import type { LookupFunction } from "node:net";

/** How long an answer is used. */
const REMEMBERED_MS = 10_000;

type LookupCallback = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** Asks the system for all addresses of a name. */
export type AskSystem = (hostname: string, answer: LookupCallback) => void;

const askSystem: AskSystem = (hostname, answer) => lookup(hostname, { all: true }, answer);

/** Makes a look-up function for one name: one question at a time, its answer remembered unless it was an error. */
export function sharedLookup(
  ask: AskSystem = askSystem,
  nowMs: () => number = () => performance.now(),
): LookupFunction {
  let known: LookupAddress[] = [];
  let knownUntilMs = 0;
  const waiting: LookupCallback[] = [];
  return (hostname, options, callback) => {
    const give: LookupCallback = (error, addresses) => {
      const [first] = addresses;
      if (options.all) callback(error, addresses);
      else callback(error, first?.address ?? "", first?.family);
    };
    if (nowMs() < knownUntilMs) {
      // Never before the caller has gone on, like the system's own answers.
      process.nextTick(give, null, known);
      return;
    }
    waiting.push(give);
    if (waiting.length > 1) return;
    ask(hostname, (error, addresses) => {
      known = addresses;
      knownUntilMs = error ? 0 : nowMs() + REMEMBERED_MS;
      for (const each of waiting.splice(0)) each(error, addresses ?? []);
    });
  };
}
