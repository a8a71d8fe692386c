/**
 * IP addresses: which are trusted, and which of those that the hops in front of us wrote down is to be believed.
 */
import { BlockList, isIP, SocketAddress } from "node:net";

const MAPPED_PREFIX = "::ffff:";
const MAPPED_BITS = 96;

/**
 * An address in its one spelling, so that equal addresses are equal texts: IPv6 compressed and in lower case, an
 * IPv4-mapped IPv6 address as IPv4, no zone.
 * @returns undefined when the text is no IP address.
 */
export function normalIp(text: string): string | undefined {
  const kind = isIP(text);
  if (kind === 0) return undefined;
  if (kind === 4) return text;
  const zone = text.indexOf("%");
  const { address } = new SocketAddress({ address: zone < 0 ? text : text.slice(0, zone), family: "ipv6" });
  const mapped = address.startsWith(MAPPED_PREFIX) ? address.slice(MAPPED_PREFIX.length) : "";
  return isIP(mapped) === 4 ? mapped : address;
}

/**
 * Makes a test for addresses within CIDR blocks; a lone address is a block of its own. The word `unix` means unix
 * sockets, which have no address, and is skipped.
 * @throws RangeError naming the text that is no block.
 */
export function cidrMatcher(blocks: readonly string[]): (ip: string) => boolean {
  const list = new BlockList();
  for (const block of blocks) if (block !== "unix") addBlock(list, block);
  return remembered((ip) => {
    const address = normalIp(ip);
    return address !== undefined && list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
  });
}

/** Addresses are few and asked about with every request. */
const REMEMBERED_MAX = 1_000;
/** The longest text of an address, with a zone; what is longer was made up. */
const REMEMBERED_CHARS_MAX = 64;

/** The same answers, those given lately without asking again: 0.02 us for 0.3, and for 2.7 of IPv6. */
export function remembered<Answer>(ask: (address: string) => Answer): (address: string) => Answer {
  let known = new Map<string, { readonly answer: Answer }>();
  return (address) => {
    const before = known.get(address);
    if (before) return before.answer;
    const answer = ask(address);
    if (address.length > REMEMBERED_CHARS_MAX) return answer;
    if (known.size >= REMEMBERED_MAX) known = new Map();
    known.set(address, { answer });
    return answer;
  };
}

function addBlock(list: BlockList, block: string): void {
  const match = /^([^/]+)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(block);
  const written = match?.[1] ?? "";
  const address = normalIp(written);
  if (address === undefined || written.includes("%")) throw new RangeError(`not an address or CIDR block: ${block}`);
  const mapped = isIP(written) === 6 && isIP(address) === 4;
  const bitsMax = isIP(address) === 4 ? 32 : 128;
  const bits = match?.[2] === undefined ? bitsMax : Number(match[2]) - (mapped ? MAPPED_BITS : 0);
  if (bits < 0 || bits > bitsMax) throw new RangeError(`not an address or CIDR block: ${block}`);
  list.addSubnet(address, bits, bitsMax === 32 ? "ipv4" : "ipv6");
}

/** No more of a chain is walked; a client makes it as long as it likes, at the end where fronts append nothing. */
const FORWARDED_CHARS_MAX = 2_048;

/**
 * The client's address by `x-forwarded-for`: from the right, the first that none of our own hops has. Everything left
 * of it was written by that client and proves nothing, and only the last 2,048 characters are looked at.
 * @param forwardedFor several header lines joined by commas.
 * @param trusts whether an address is one of our own hops.
 * @returns the last of all where all are trusted: a program on a front's own machine, as the hop next to us saw it. What stands left of
 * it may be made up by a client within a block that is trusted. Undefined when one that is no address comes first.
 */
export function forwardedClient(forwardedFor: string, trusts: (ip: string) => boolean): string | undefined {
  const hops = lastOf(forwardedFor).split(",");
  let nearest: string | undefined;
  for (let i = hops.length - 1; i >= 0; i--) {
    const ip = normalIp(withoutPort((hops[i] as string).trim()));
    if (ip === undefined || !trusts(ip)) return ip;
    nearest ??= ip;
  }
  return nearest;
}

/** The entries that are whole within the last characters of a chain. */
function lastOf(forwardedFor: string): string {
  if (forwardedFor.length <= FORWARDED_CHARS_MAX) return forwardedFor;
  const last = forwardedFor.slice(-FORWARDED_CHARS_MAX - 1);
  const comma = last.indexOf(",");
  return comma === -1 ? "" : last.slice(comma + 1);
}

/** Some fronts write `1.2.3.4:5678` or `[::1]:5678`. */
function withoutPort(hop: string): string {
  const match = /^(?:\[([^\]]+)\]|([0-9.]+))(?::[0-9]{1,5})?$/.exec(hop);
  return match?.[1] ?? match?.[2] ?? hop;
}

/*
 * Whom the failures of a client's address are counted for. One host usually owns a whole /64 of IPv6, so that it could give
 * every attempt an address of its own. A rarely written form (`::` before the fifth group) falls into a wider bucket.
 */

export function addressBucket(address: string): string {
  if (!address.includes(":")) return address;
  const [left = ""] = address.split("::");
  return `${left.split(":").slice(0, 4).join(":")}::/64`;
}

/** The network of a bucket that may be one holder's too: a /48 of IPv6 is what a site is given, and has 65,536 buckets. */
export function networkOf(bucket: string): string | undefined {
  if (!bucket.includes(":")) return undefined;
  return `${bucket.split(":").slice(0, 3).join(":")}::/48`;
}
