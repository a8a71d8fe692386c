/** IP addresses: which are trusted, and which entry of a forwarding header to trust. */
import { BlockList, isIP, SocketAddress } from "node:net";

const MAPPED_PREFIX = "::ffff:";
const MAPPED_BITS = 96;

/**
 * An address in normalized form, so that equal addresses are equal strings: IPv6 compressed and in lowercase, an
 * IPv4-mapped IPv6 address as IPv4, no zone.
 * @returns undefined if the text is not an IP address.
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
 * Makes a test for addresses within CIDR blocks; a single address is a block of its own. The word `unix` means unix
 * sockets, which have no address, and is skipped.
 * @throws RangeError naming the text that is not a block.
 */
export function cidrMatcher(blocks: readonly string[]): (ip: string) => boolean {
  const list = new BlockList();
  for (const block of blocks) if (block !== "unix") addBlock(list, block);
  return remembered((ip) => {
    const address = normalIp(ip);
    return address !== undefined && list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
  });
}

/** Addresses are few, and are checked with every request. */
const REMEMBERED_MAX = 1_000;
/** The longest text of an address, with a zone; longer texts are made up. */
const REMEMBERED_CHARS_MAX = 64;

/** Caches recent answers: 0.02 us instead of 0.3, and instead of 2.7 for IPv6. */
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

/**
 * Maximum part of a chain that is read, from the end where fronts append; a client can make the chain as long as it
 * likes.
 */
const FORWARDED_CHARS_MAX = 2_048;

/**
 * The client's address by `x-forwarded-for`: from the right, the first address that is not one of our own hops.
 * Everything to the left of it was written by that client and proves nothing. Only the last 2,048 characters are read.
 * @param forwardedFor several header lines joined by commas.
 * @param trusts whether an address is one of our own hops.
 * @returns the last address if all are trusted: a program on a front's own machine, as seen by our nearest hop. Entries
 *   to the left of it may be made up by a client within a trusted block. Undefined if an entry that is not an address
 *   comes first.
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

/** The complete entries within the last characters of a chain. */
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

/** Groups of 16 bits in an IPv6 address, and in its /64 network. */
const GROUPS = 8;
const NETWORK_GROUPS = 4;

/**
 * The bucket in which failures of a client's address are counted. One host usually owns a whole /64 of IPv6, so it
 * could use another address for every attempt. The zeros that `::` stands for are written out, because some addresses
 * of a network have it within the network's part and others after it. An IPv4-mapped address counts as IPv4.
 */
export function addressBucket(address: string): string {
  if (!address.includes(":")) return address;
  if (address.startsWith(MAPPED_PREFIX) && address.includes(".")) return address.slice(MAPPED_PREFIX.length);
  const [left = [], right = []] = address.split("::").map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array<string>(Math.max(0, GROUPS - left.length - right.length)).fill("0");
  return `${[...left, ...zeros, ...right].slice(0, NETWORK_GROUPS).join(":")}::/64`;
}

/**
 * The network of a bucket, which may also have a single owner: a site usually gets a /48 of IPv6, which has 65,536
 * buckets.
 */
export function networkOf(bucket: string): string | undefined {
  if (!bucket.includes(":")) return undefined;
  return `${bucket.split(":").slice(0, 3).join(":")}::/48`;
}
