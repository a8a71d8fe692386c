/** What routes of owners work with. */

import type { ConsoleSettings, NoticeSettings } from "../../values/settings.ts";
import type { ConsoleParts } from "../routes/contract.ts";
import type { UpstreamWatcher } from "../routes/upstreams.ts";

export interface OwnerParts extends ConsoleParts, UpstreamWatcher {
  readonly settings: ConsoleSettings;
  /** From when on owners are warned; undefined: the configuration does not say. */
  readonly warnsAt?: () => Pick<NoticeSettings, "balanceBelowNano" | "cardEndsWithinMs"> | undefined;
}
