/**
 * The size of a PNG, JPEG, GIF or WebP image, read from its first bytes. An image of another format, or one that hides
 * its size, has none here. No input makes this throw, and each call reads at most the bytes that it is given.
 */

interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/**
 * Numbers of bytes that are tried in turn until a size is found. JPEGs with long profiles and previews need the most.
 */
export const IMAGE_HEAD_BYTES = [4_096, 65_536, 1_048_576] as const;

/** The size in pixels; undefined if these bytes do not contain it. */
export function imageSize(head: Buffer): ImageSize | undefined {
  const size = readSize(head);
  return size && size.width > 0 && size.height > 0 ? size : undefined;
}

function readSize(head: Buffer): ImageSize | undefined {
  if (head.length < 30) return undefined;
  if (head.readUInt32BE(0) === 0x89504e47) return pngSize(head);
  if (head.readUInt16BE(0) === 0xffd8) return jpegSize(head);
  const name = head.toString("latin1", 0, 6);
  if (name === "GIF87a" || name === "GIF89a") return gifSize(head);
  return head.toString("latin1", 0, 4) === "RIFF" && head.toString("latin1", 8, 12) === "WEBP"
    ? webpSize(head)
    : undefined;
}

function pngSize(head: Buffer): ImageSize | undefined {
  if (head.toString("latin1", 12, 16) !== "IHDR") return undefined;
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
}

/**
 * Skips segments up to the frame header (ITU-T T.81, B.1.1). Previews are inside other segments and are skipped too.
 */
function jpegSize(head: Buffer): ImageSize | undefined {
  let at = 2;
  while (at + 9 <= head.length) {
    if (head[at] !== 0xff) return undefined;
    const marker = head[at + 1] as number;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { height: head.readUInt16BE(at + 5), width: head.readUInt16BE(at + 7) };
    const standsAlone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);
    if (!standsAlone && (marker < 0xc0 || marker === 0xd8 || marker === 0xd9 || marker === 0xda)) return undefined;
    at += standsAlone ? 2 : 2 + head.readUInt16BE(at + 2);
  }
  return undefined;
}

/** Reads the first frame as well, because it may be larger than the screen size in the header. */
function gifSize(head: Buffer): ImageSize | undefined {
  const screen = { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  const flags = head[10] as number;
  let at = 13 + (flags & 0x80 ? 3 * 2 ** ((flags & 0x07) + 1) : 0);
  while (at + 10 <= head.length) {
    if (head[at] === 0x2c) {
      const right = head.readUInt16LE(at + 1) + head.readUInt16LE(at + 5);
      const bottom = head.readUInt16LE(at + 3) + head.readUInt16LE(at + 7);
      return { width: Math.max(screen.width, right), height: Math.max(screen.height, bottom) };
    }
    if (head[at] !== 0x21) return undefined;
    at += 2;
    for (let length = head[at]; length !== undefined && length !== 0; length = head[at]) at += length + 1;
    at += 1;
  }
  return undefined;
}

function webpSize(head: Buffer): ImageSize | undefined {
  const kind = head.toString("latin1", 12, 16);
  if (kind === "VP8X") return { width: 1 + head.readUIntLE(24, 3), height: 1 + head.readUIntLE(27, 3) };
  if (kind === "VP8L") {
    const bits = head.readUInt32LE(21);
    return head[20] === 0x2f ? { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) } : undefined;
  }
  if (kind !== "VP8 " || head.readUIntBE(23, 3) !== 0x9d012a) return undefined;
  return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
}
