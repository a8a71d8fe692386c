/** The network of an address with a prefix length. */
import { isIPv4, SocketAddress } from "node:net";

/**
 * @param address IPv4, or IPv6 without a zone.
 * @param bits prefix length, at most 32 for IPv4 and 128 for IPv6.
 * @returns the network's address; undefined if that is the given address.
 */
export function otherNetwork(address: string, bits: number): string | undefined {
  const isV4 = isIPv4(address);
  const width = isV4 ? 8 : 16;
  const groups = isV4 ? address.split(".").map(Number) : groupsOfIpv6(address);
  const kept = groups.map((group, at) => {
    const free = width - Math.min(width, Math.max(0, bits - at * width));
    return (group >> free) << free;
  });
  if (kept.every((group, at) => group === groups[at])) return undefined;
  if (isV4) return kept.join(".");
  const written = kept.map((group) => group.toString(16)).join(":");
  return new SocketAddress({ address: written, family: "ipv6" }).address;
}

function groupsOfIpv6(address: string): number[] {
  // URL normalizes IPv6 to hexadecimal, even if the end was written as IPv4.
  const { hostname } = new URL(`http://[${address}]/`);
  const [before = [], after = []] = hostname
    .slice(1, -1)
    .split("::")
    .map((part) => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16))));
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}
