/** Names in a price that no request is ever charged by: a price that is never charged is a mistake, often a slip. */

import { tierNameFault } from "../../values/members/tier.ts";
import { OPTION_MEMBERS } from "../../values/members.ts";
import { toolNameFault } from "../../values/tokens/tool-calls.ts";
import { type ConfigPath, shownKey, suggestion } from "../problems.ts";
import type { Reader } from "./reader.ts";

/** The parts of a price whose names are looked at, as written. */
interface NamedPrices {
  readonly options?: object | undefined;
  readonly tools?: object | undefined;
  readonly tiers?: object | undefined;
}

/** Complains about each tool, option and tier of a price or a cost that nothing can be charged by. */
export function checkPriceNames(reader: Reader, path: ConfigPath, price: NamedPrices): void {
  const refuse = (key: string, name: string, why: string, near: string) =>
    reader.complain([...path, key, name], `"${shownKey(name)}" is refused: it ${why}${near}`, "key");
  for (const name of Object.keys(price.options ?? {})) {
    if (OPTION_MEMBERS.has(name)) continue;
    const why = "must be a member that asks for an extra (the options in docs/members.md): no other is ever charged";
    refuse("options", name, why, suggestion(name, OPTION_MEMBERS));
  }
  for (const name of Object.keys(price.tools ?? {})) {
    const fault = toolNameFault(name, OPTION_MEMBERS);
    if (fault) refuse("tools", name, fault.why, meantBy(fault));
  }
  for (const name of Object.keys(price.tiers ?? {})) {
    const fault = tierNameFault(name);
    if (fault) refuse("tiers", name, fault.why, meantBy(fault));
  }
}

const meantBy = ({ meant }: { readonly meant?: string }) => (meant === undefined ? "" : ` (did you mean "${meant}"?)`);
