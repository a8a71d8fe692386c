/** Which members an upstream gets though no protocol lists them. */

import { mistakenFor } from "../../values/members/shape.ts";
import { MEMBERS, type PassedMembers } from "../../values/members.ts";
import { PROTOCOLS, type Protocol } from "../../values/protocol.ts";
import type { ConfigPath } from "../problems.ts";
import type { LooseUpstream, Reader } from "./reader.ts";

/** Reads `unknown_members` and `pass_members`; a name that is listed, or could be taken for one, is refused. */
export function readPassedMembers(reader: Reader, path: ConfigPath, upstream: LooseUpstream): PassedMembers {
  const names = new Set<string>();
  for (const [index, name] of (upstream.pass_members ?? []).entries()) {
    if (name === undefined) continue;
    const why = refusedBecause(name, upstream.protocol ?? "chat");
    if (why !== undefined) reader.refuse([...path, "pass_members", index], why);
    names.add(name);
  }
  return { all: upstream.unknown_members === "pass", names };
}

function refusedBecause(path: string, protocol: Protocol): string | undefined {
  const names = path.split(".");
  let shape = MEMBERS[protocol];
  for (const [index, name] of names.entries()) {
    const standing = shape.standings.get(name);
    const known = mistakenFor(name, shape);
    if (known !== undefined) return `must not be a name that servers read as "${known}"`;
    if (index < names.length - 1) {
      const inner = shape.inside.get(name);
      if (!inner) return `must name members whose own members are looked at; those of "${name}" are not`;
      shape = inner;
    } else if (standing !== undefined && standing !== "envelope") {
      return REASONS[standing](name, protocol);
    }
  }
  return undefined;
}

const REASONS = {
  plain: () => "must not be a listed member: that passes anyway",
  tier: () => "must be a member that no protocol lists; this one needs a price under price.tiers of the model",
  option: (name: string) =>
    `must be a member that no protocol lists; this one needs a price: price.options.${name} of the model, "0" allows it`,
  limit: (_: string, protocol: Protocol) =>
    `must not be an output limit under another name than ${PROTOCOLS[protocol].limitFields.join(" or ")}`,
  state: () => "must not refer to what a server keeps: it belongs to whoever has the credential",
} as const;
