/**
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
