/**
 * An operator who sees that gateways have stopped because their store lost data, takes some time, and confirms the
 * present data (`tollgate store confirm`) through whichever gateway answers.
 */
import { StoreError } from "../../../src/store/contract.ts";
import type { Chance } from "./chance.ts";
import type { Running } from "./gateway.ts";

const LOOKS_EVERY_MS = 1_000;

export interface WatchmanParts {
  readonly chance: Chance;
  readonly serving: () => readonly Running[];
  readonly sleep: (ms: number) => Promise<void>;
  readonly count: (what: string) => void;
  readonly note: (who: string, what: string) => void;
  /** After the end of all faults a loss is confirmed without delay. */
  readonly isPeace: () => boolean;
}

/** Never ends. */
export async function watch(parts: WatchmanParts): Promise<void> {
  const { chance, sleep, isPeace } = parts;
  for (;;) {
    await sleep(LOOKS_EVERY_MS);
    const stopped = parts.serving().filter(({ charging }) => charging.epoch.losses().length > 0);
    if (stopped.length === 0) continue;
    if (!isPeace()) await sleep(chance.skewed(500, 20_000));
    // A loss that has been repaired meanwhile needs no confirmation.
    const asked = chance.pick(stopped).charging.epoch;
    const token = asked.token();
    if (token === undefined) continue;
    await confirm(asked, token, parts);
  }
}

async function confirm(epoch: Running["charging"]["epoch"], token: string, parts: WatchmanParts): Promise<void> {
  const answered = epoch.confirm(token).then(
    (outcome) => outcome as string,
    (error: unknown) => {
      if (error instanceof StoreError) return error.kind;
      throw error;
    },
  );
  // A gateway that dies never answers.
  const outcome = await Promise.race([answered, parts.sleep(2_000)]);
  parts.note("operator", `confirms the store: ${outcome ?? "no answer"}`);
  parts.count(`confirm ${outcome ?? "unanswered"}`);
}
