/** What the console of owners and its routes work with. */

import type { ConsoleSettings, NoticeSettings } from "../../values/settings.ts";
import type { ConsoleLog } from "../app.ts";
import type { Audit } from "../audit/audit.ts";
import type { ConsoleParts } from "../routes/contract.ts";
import type { UpstreamWatcher } from "../routes/upstreams.ts";
import type { Sealer } from "../sign-in/sessions.ts";
import type { OwnExplain } from "./help.ts";

export interface OwnerParts extends ConsoleParts, UpstreamWatcher {
  readonly settings: ConsoleSettings;
  /** From when on owners are warned; undefined: the configuration does not say. */
  readonly warnsAt?: () => Pick<NoticeSettings, "balanceBelowNano" | "cardEndsWithinMs"> | undefined;
}

export interface OwnerConsoleOptions extends OwnerParts {
  readonly sealer: Sealer;
  readonly audit: Audit;
  /** Says what would become of a request of an own key. */
  readonly explain: OwnExplain;
  /** Takes reports of defects, flat objects without secrets. */
  readonly log: ConsoleLog;
}
