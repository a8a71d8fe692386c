/**
 * Hosted tools, which are charged per call. A request offers a tool under the name that has a price; the server counts
 * its calls under its own name, which may differ.
 */

import type { Protocol } from "../protocol.ts";
import { slipOf } from "../words/nearest.ts";

/** Calls of one tool in one request above which a count is not plausible: no server runs so many before it answers. */
export const TOOL_CALLS_PLAUSIBLE_MAX = 10_000;

/** Tool names that are read in one object of counts, and in all counts of a reply; further ones are ignored. */
export const TOOLS_MAX = 16;
const TOOL_NAME = /^[a-z][a-z0-9_]{0,40}$/;

/** Whether a server may have counted calls under this name. */
export function isToolName(name: string): boolean {
  return TOOL_NAME.test(name);
}

/**
 * Merges two counts of the same calls: the larger one for each tool, for at most TOOLS_MAX tools. A charge that exceeds
 * the size of a journal record cannot be stored anywhere.
 */
export function mergedCalls(
  one: Readonly<Record<string, number>>,
  other: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const merged: Record<string, number> = { ...one };
  let found = Object.keys(merged).length;
  for (const [tool, calls] of Object.entries(other)) {
    // A name may be one that every object has.
    const before = Object.hasOwn(merged, tool) ? merged[tool] : undefined;
    if (before === undefined && found++ >= TOOLS_MAX) continue;
    merged[tool] = Math.max(before ?? 0, calls);
  }
  return merged;
}

/** Other names of a tool, and the one name under which it is counted. */
const FAMILIES: ReadonlyMap<string, string> = new Map([
  ["web_search_options", "web_search"],
  ["search_parameters", "live_search"],
  ["computer_use", "computer"],
  ["mcp_servers", "mcp"],
  ["mcp_toolset", "mcp"],
]);

/** The one name for all names of a tool. */
function toolFamily(name: string): string {
  return FAMILIES.get(name) ?? name;
}

/**
 * The calls that a server counts. For offered tools that the server does not count at all, adds the calls that its
 * reply shows, because some servers count only their searches. If the server counts a tool, its own count is what it
 * bills. Tools that it runs unrequested, such as code that sorts the results of a search, are part of what was
 * requested.
 * @param shown with a result: a call that still runs when a message pauses is counted in the message that continues it.
 * @param offered price names of the tools that the request has offered.
 */
export function withShownCalls(
  counted: Readonly<Record<string, number>>,
  shown: Readonly<Record<string, number>>,
  offered: readonly string[],
): Readonly<Record<string, number>> {
  const known = new Set(Object.keys(counted).map(toolFamily));
  const wanted = new Set(offered.map(toolFamily).filter((family) => !known.has(family)));
  const uncounted = Object.entries(shown).filter(([tool]) => wanted.has(toolFamily(tool)));
  return uncounted.length === 0 ? counted : mergedCalls(counted, Object.fromEntries(uncounted));
}

/** Chat's member that turns a search on. */
const SEARCH_OPTION = "web_search_options";

/**
 * Whether a member that asks for an extra goes upstream. Translations leave such members out, whatever the server knows,
 * with one exception: the member that turns a search on in chat completions becomes a tool in responses.
 */
export function reachesUpstream(option: string, client: Protocol | undefined, upstream: Protocol): boolean {
  if (upstream === client) return true;
  return option === SEARCH_OPTION && client === "chat" && upstream === "responses";
}

/** The name under which a member has its price; the name of the tool that it turns on is accepted too. */
export function optionPriceName(option: string, prices: ReadonlyMap<string, bigint>): string {
  return option === SEARCH_OPTION && !prices.has(option) ? toolFamily(option) : option;
}

/** Tools whose calls are items of a response (`web_search_call`), so that each call is visible. */
export const SHOWN_IN_RESPONSES: ReadonlySet<string> = new Set(
  "web_search file_search code_interpreter image_generation computer mcp shell tool_search".split(" "),
);

/** Whether a reply in this protocol shows the calls of a tool as they are made; chat completions show none. */
function showsCalls(protocol: Protocol, name: string): boolean {
  return protocol === "messages" || (protocol === "responses" && SHOWN_IN_RESPONSES.has(toolFamily(name)));
}

/**
 * Calls that may have been made unseen: for each tool, as many as the hold covers.
 * @param offered price names of the tools that the request has offered.
 * @param upstream the protocol of the reply that was seen; undefined if none was.
 */
export function unseenCalls(
  offered: readonly string[],
  held: number,
  upstream: Protocol | undefined,
): Readonly<Record<string, number>> {
  const calls: Record<string, number> = {};
  for (const name of offered) {
    if (held > 0 && (upstream === undefined || !showsCalls(upstream, name))) calls[toolFamily(name)] = held;
  }
  return calls;
}

/** The name under which a tool type has its price: `web_search_20250305` and `web_search` share one. */
export function toolPriceName(toolType: string): string {
  return toolType.replace(/_(?:preview(?:_\d[\d_]*)?|\d{4}_?\d{2}_?\d{2})$/, "");
}

/**
 * Tools that servers are known to run. Servers invent others, so a price may have any name; these serve to detect
 * typos.
 */
const KNOWN_TOOLS: ReadonlySet<string> = new Set([
  ...FAMILIES.keys(),
  ...FAMILIES.values(),
  ..."web_search x_search file_search tool_search browser_search collections_search".split(" "),
  ..."web_fetch code_execution code_interpreter image_generation computer shell local_shell mcp advisor".split(" "),
]);

/** Types that the client runs on every protocol: no server counts them. */
const CLIENTS_OWN: ReadonlySet<string> = new Set(["function", "custom"]);

/**
 * Why calls are never charged under a price name, and the probably intended name if one is similar; undefined if they
 * can be.
 * @param members that ask for an extra: they may be priced as the tool that they turn on.
 */
export function toolNameFault(
  name: string,
  members: ReadonlySet<string>,
): { readonly why: string; readonly meant?: string } | undefined {
  const known = KNOWN_TOOLS.has(name) || members.has(name);
  if (CLIENTS_OWN.has(name)) return { why: "must be a tool that the server runs; this one is the client's own" };
  const undated = toolPriceName(name);
  if (undated !== name)
    return { why: "must be a tool's name without date and preview: all versions have one price", meant: undated };
  const meant = known ? undefined : slipOf(name, KNOWN_TOOLS);
  return meant === undefined ? undefined : { why: "must be a tool as requests and servers name it", meant };
}

/** Why no client is charged for calls that a server counts. */
type UnpaidReason = "not_offered" | "over_maximum";

/** Calls of one tool that no client pays for. */
export interface UnpaidCalls {
  /** The name under which the server counts it. */
  readonly tool: string;
  /** At most TOOL_CALLS_PLAUSIBLE_MAX. */
  readonly calls: number;
  readonly reason: UnpaidReason;
}

/** The result of splitting a server's count. */
interface ToolBill {
  /** Calls that the client pays for, by price name. */
  readonly charged: Readonly<Record<string, number>>;
  readonly unpaid: readonly UnpaidCalls[];
}

/**
 * Splits the calls that a server counts into those that the client pays for and the rest. The client pays for the tools
 * that its request has offered, up to `max` calls of each.
 * @param offered price names of the tools that the request has offered.
 */
export function billTools(
  counted: Readonly<Record<string, number>>,
  offered: readonly string[],
  max: number,
): ToolBill {
  const charged: Record<string, number> = {};
  const unpaid: UnpaidCalls[] = [];
  const leave = (tool: string, calls: number, reason: UnpaidReason) => {
    if (calls > 0) unpaid.push({ tool, calls: Math.min(calls, TOOL_CALLS_PLAUSIBLE_MAX), reason });
  };
  for (const [tool, calls] of Object.entries(counted)) {
    const name = offered.find((one) => toolFamily(one) === toolFamily(tool));
    if (name === undefined) {
      leave(tool, calls, "not_offered");
      continue;
    }
    const before = charged[name] ?? 0;
    const paid = Math.min(before + calls, max);
    if (paid > 0) charged[name] = paid;
    leave(tool, before + calls - paid, "over_maximum");
  }
  return { charged, unpaid };
}

/** Converts calls as counted by servers to the price names of a table; calls without a price are left out. */
export function pricedCalls(
  unpaid: readonly UnpaidCalls[],
  prices: ReadonlyMap<string, bigint>,
): Readonly<Record<string, number>> {
  const calls: Record<string, number> = {};
  for (const one of unpaid) {
    const name = [...prices.keys()].find((priced) => toolFamily(priced) === toolFamily(one.tool));
    if (name !== undefined) calls[name] = (calls[name] ?? 0) + one.calls;
  }
  return calls;
}
