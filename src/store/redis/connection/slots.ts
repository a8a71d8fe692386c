/**
 * The slot, out of 16,384, of a key in a Redis Cluster: CRC-16/XMODEM of its hash tag (Redis Cluster specification).
 */

const SLOTS = 16_384;
const POLYNOMIAL = 0x1021;

/** The slot of a key. Only the text in the first braces counts, unless that is empty. */
export function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return crc16(close > open + 1 ? key.slice(open + 1, close) : key) % SLOTS;
}

function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? POLYNOMIAL : 0)) & 0xffff;
  }
  return crc;
}

/** This many tags; the n-th is in the n-th of equally long slot ranges. */
export function tagsOverSlots(count: number): readonly string[] {
  const tags = new Map<number, string>();
  for (let n = 0; tags.size < count; n++) {
    const part = partOf(slotOf(`${n}`), count);
    if (!tags.has(part)) tags.set(part, `${n}`);
  }
  return Array.from({ length: count }, (_, part) => tags.get(part) as string);
}

/** The range that a slot is in. */
export function partOf(slot: number, count: number): number {
  return Math.floor((slot * count) / SLOTS);
}
