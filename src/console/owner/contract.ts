/** Types that the owners' console and its routes share. */

import type { ConsoleSettings, NoticeSettings } from "../../values/settings.ts";
import type { ConsoleLog } from "../app.ts";
import type { Audit } from "../audit/audit.ts";
import type { ConsoleParts } from "../routes/contract.ts";
import type { UpstreamWatcher } from "../routes/upstreams.ts";
import type { Sealer } from "../sign-in/sessions.ts";
import type { OwnExplain } from "./help.ts";

export interface OwnerParts extends ConsoleParts, UpstreamWatcher {
  readonly settings: ConsoleSettings;
  /** When owners are warned; undefined: the configuration does not say. */
  readonly warnsAt?: () => Pick<NoticeSettings, "balanceBelowNano" | "cardEndsWithinMs"> | undefined;
}

export interface OwnerConsoleOptions extends OwnerParts {
  readonly sealer: Sealer;
  readonly audit: Audit;
  /** Explains what would happen to a request with one of the owner's keys. */
  readonly explain: OwnExplain;
  /** Receives reports of defects, flat objects without secrets. */
  readonly log: ConsoleLog;
}
