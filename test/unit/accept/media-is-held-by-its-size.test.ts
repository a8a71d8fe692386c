/** The highest possible cost of an image or a file, from its bytes and its header; neither is trusted alone. */
import assert from "node:assert/strict";
import test from "node:test";
import { deflateRawSync, deflateSync } from "node:zlib";
import fc from "fast-check";
import { imageSize } from "../../../src/accept/envelope/image-size.ts";
import { pdfSize, readingBudget } from "../../../src/accept/envelope/pdf-size.ts";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { MediaPiece } from "../../../src/values/members/envelope.ts";
import { pdf, stream } from "../../rig/pdf.ts";

function piecesOf(content: readonly object[]): readonly MediaPiece[] {
  const body = { model: "m", messages: [{ role: "user", content }] };
  const read = readEnvelope("chat", Buffer.from(JSON.stringify(body)));
  assert.ok(!isRefusal(read), JSON.stringify(read));
  return read.envelope.media;
}

const image = (data: Buffer) => ({
  type: "image_url",
  image_url: { url: `data:image/png;base64,${data.toString("base64")}` },
});
const file = (data: Buffer) => ({
  type: "file",
  file: { file_data: `data:application/pdf;base64,${data.toString("base64")}` },
});
const tokensOf = (part: object) => piecesOf([part])[0]?.tokens;

function png(width: number, height: number, bytes = 60): Buffer {
  const head = Buffer.alloc(bytes);
  head.write("\x89PNG\r\n\x1a\n", 0, "latin1");
  head.writeUInt32BE(13, 8);
  head.write("IHDR", 12, "latin1");
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return head;
}

/** Segments before the frame header: application segments that contain a preview. */
function jpeg(width: number, height: number, segmentBytes: number, bytes = segmentBytes + 1_000): Buffer {
  const data = Buffer.alloc(bytes);
  let at = data.writeUInt16BE(0xffd8, 0);
  for (let left = segmentBytes; left > 0; left -= 60_000) {
    const length = Math.min(left, 60_000);
    data.writeUInt16BE(0xffe1, at);
    data.writeUInt16BE(length + 2, at + 2);
    // The preview's frame header, which must not be mistaken for the image's.
    if (length > 30) jpegFrame(data, at + 10, 8, 8);
    at += length + 4;
    if (at + 20 > data.length) break;
  }
  jpegFrame(data, at, width, height);
  return data;
}

function jpegFrame(data: Buffer, at: number, width: number, height: number): void {
  data.writeUInt16BE(0xffc0, at);
  data.writeUInt16BE(17, at + 2);
  data[at + 4] = 8;
  data.writeUInt16BE(height, at + 5);
  data.writeUInt16BE(width, at + 7);
}

function gif(screen: readonly [number, number], frame: readonly [number, number]): Buffer {
  const data = Buffer.alloc(80);
  data.write("GIF89a", 0, "latin1");
  data.writeUInt16LE(screen[0], 6);
  data.writeUInt16LE(screen[1], 8);
  data[10] = 0x80; // Two colors.
  Buffer.from([0x21, 0xf9, 4, 0, 0, 0, 0, 0]).copy(data, 19);
  data[27] = 0x2c;
  data.writeUInt16LE(frame[0], 32);
  data.writeUInt16LE(frame[1], 34);
  return data;
}

function webp(kind: "VP8X" | "VP8L" | "VP8 ", width: number, height: number): Buffer {
  const data = Buffer.alloc(64);
  data.write("RIFF\0\0\0\0WEBP", 0, "latin1");
  data.write(kind, 12, "latin1");
  if (kind === "VP8X") {
    data.writeUIntLE(width - 1, 24, 3);
    data.writeUIntLE(height - 1, 27, 3);
  } else if (kind === "VP8L") {
    data[20] = 0x2f;
    data.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 21);
  } else {
    data.writeUIntBE(0x9d012a, 23, 3);
    data.writeUInt16LE(width, 26);
    data.writeUInt16LE(height, 28);
  }
  return data;
}

/** Name, bytes, size. */
const SIZES: readonly (readonly [string, Buffer, readonly [number, number] | undefined])[] = [
  ["PNG", png(1920, 1080), [1920, 1080]],
  ["PNG without a size", png(0, 10), undefined],
  ["JPEG", jpeg(4032, 3024, 40), [4032, 3024]],
  ["JPEG after a preview", jpeg(640, 480, 3_000), [640, 480]],
  ["GIF", gif([100, 50], [100, 50]), [100, 50]],
  ["GIF whose frame is larger than its screen", gif([1, 1], [3_000, 2_000]), [3_000, 2_000]],
  ["GIF whose screen is larger than its frame", gif([3_000, 2_000], [1, 1]), [3_000, 2_000]],
  ["GIF whose frame is wider and less tall", gif([100, 2_000], [3_000, 50]), [3_000, 2_000]],
  ["WebP, extended", webp("VP8X", 5_000, 4_000), [5_000, 4_000]],
  ["WebP, lossless", webp("VP8L", 800, 600), [800, 600]],
  ["WebP, lossy", webp("VP8 ", 800, 600), [800, 600]],
  ["text", Buffer.from("no picture at all, but long enough to be looked at"), undefined],
  ["nothing", Buffer.alloc(0), undefined],
];

for (const [name, data, size] of SIZES) {
  test(`the size of a ${name}`, () => {
    const found = imageSize(data);
    assert.deepEqual(found && [found.width, found.height], size);
  });
}

test("for arbitrary bytes, reading the size takes bounded time and never throws", () => {
  const begun = fc.constantFrom(
    "\x89PNG\r\n\x1a\n",
    "\xff\xd8\xff",
    "GIF89a",
    "RIFFxxxxWEBPVP8L",
    "RIFFxxxxWEBPVP8X",
    "",
  );
  fc.assert(
    fc.property(begun, fc.uint8Array({ maxLength: 400 }), (head, rest) => {
      const size = imageSize(Buffer.concat([Buffer.from(head, "latin1"), rest]));
      assert.ok(size === undefined || (size.width > 0 && size.height > 0));
    }),
    { numRuns: 3_000 },
  );
});

/**
 * Figures that vendors publish or bill: width, height, tokens. Sources: docs/decisions/a-hold-follows-what-is-held.md.
 */
const PUBLISHED: readonly (readonly [string, number, number, number])[] = [
  ["width x height / 750", 1092, 1092, 1_590],
  ["width x height / 750, at the size of 4,784 tokens", 2_576, 1_449, 4_784],
  ["patches of 28", 8_000, 1, 286],
  ["512-pixel tiles of 170 and 85", 2_048, 2_048, 765],
  ["32-pixel patches at 1.2", 1_024, 1_024, 1_229],
  ["32-pixel patches at 1.2, without a cap", 4_032, 3_024, 14_364],
  ["32-pixel patches at 1.2, a wide screen", 3_840, 2_160, 9_792],
  ["768-pixel tiles of 258", 3_840, 2_160, 3_870],
];

for (const [rule, width, height, tokens] of PUBLISHED) {
  test(`${width} x ${height} is never held below ${tokens}: ${rule}`, () => {
    const held = tokensOf(image(png(width, height)));
    assert.ok(held !== undefined && held >= tokens, String(held));
  });
}

test("a header that says that an image is small is trusted only as far as the number of bytes allows", () => {
  assert.equal(tokensOf(image(png(8, 8))), 1);
  const tokens = tokensOf(image(png(8, 8, 1_000_000)));
  assert.ok(tokens !== undefined && tokens >= 5_000, String(tokens));
  assert.equal(tokensOf(image(png(60_000, 60_000))), Math.ceil(60_000 / 27) ** 2);
});

test("the size of a JPEG is searched for in a bounded number of bytes", () => {
  assert.ok((tokensOf(image(jpeg(4_000, 3_000, 500_000))) ?? 0) >= 16_000);
  assert.equal(tokensOf(image(jpeg(4_000, 3_000, 3_000_000))), undefined);
});

test("media that shows no size is unknown, and counts as an image or a file by its type", () => {
  const unknown: readonly (readonly [object, MediaPiece["kind"]])[] = [
    [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }, "image"],
    [{ type: "image_url", image_url: { url: "data:image/heic;base64,AAAAHGZ0eXBoZWlj" } }, "image"],
    [{ type: "image", image: "https://x.test/a.png" }, "image"],
    [{ type: "video_url", video_url: { url: "https://x.test/a.mp4" } }, "file"],
    [{ type: "text", text: "x", video_url: { url: "https://x.test/a.mp4" } }, "file"],
    [{ type: "audio_url", audio_url: { url: "https://x.test/a.mp3" } }, "file"],
    [{ type: "input_file", file_url: "https://x.test/a.pdf" }, "file"],
    [{ type: "hologram", data: "x" }, "file"],
    [{ type: "video", name: "a" }, "file"],
  ];
  for (const [part, kind] of unknown) assert.deepEqual(piecesOf([part]), [{ kind, tokens: undefined }]);
  assert.deepEqual(piecesOf([{ type: "text", text: "https://x.test/a.png" }]), []);
});

test("media in members that only some servers have is media, not text", () => {
  const data = png(270, 270, 90_000).toString("base64");
  const url = `data:image/png;base64,${data}`;
  for (const content of [
    { type: "image", image: url },
    { type: "text", text: "", images: [{ type: "image_url", image_url: { url } }] },
    { type: "document_url", document_url: url },
    { type: "input_audio", input_audio: data },
  ]) {
    const body = { model: "m", messages: [{ role: "user", content: [content] }] };
    const read = readEnvelope("chat", Buffer.from(JSON.stringify(body)));
    assert.ok(!isRefusal(read));
    assert.ok(
      read.envelope.textBytes < 1_000 && read.envelope.bodyBytes > 100_000,
      JSON.stringify(content).slice(0, 60),
    );
    assert.equal(read.envelope.media.length, 1, JSON.stringify(content).slice(0, 60));
  }
  const made = { type: "image_generation_call", id: "ig_1", status: "completed", result: data };
  const read = readEnvelope("responses", Buffer.from(JSON.stringify({ model: "m", input: [made] })));
  assert.ok(!isRefusal(read));
  assert.ok(read.envelope.textBytes < 1_000 && read.envelope.media[0]?.tokens !== undefined);
});

test("an image without a type counts as an image, and bytes count by their format, not by the member that they are in", () => {
  assert.deepEqual(piecesOf([{ image_url: { url: "https://x.test/a.png" } }]), [{ kind: "image", tokens: undefined }]);
  const tokens = tokensOf(file(png(1_000, 1_000)));
  assert.ok(tokens !== undefined && tokens >= 1_334);
  const [piece] = piecesOf([
    { type: "image_url", image_url: { url: `data:image/png;base64,${pdf({ pages: 3 }).toString("base64")}` } },
  ]);
  assert.deepEqual([piece?.kind, piece?.tokens], ["file", 3 * 4_600]);
});

/** How a PDF lists its pages, and how many tokens are held. */
const PAGES: readonly (readonly [string, Buffer, number | undefined])[] = [
  ["in the clear", pdf({ pages: 12 }), 12 * 4_600],
  ["in a compressed object stream", pdf({ pages: 12, objectStreams: true }), 12 * 4_600],
  ["one page that is listed 300 times", pdf({ pages: 300, objectStreams: true, oneObject: true }), 300 * 4_600],
  ["names spelled with escapes", pdf({ pages: 12, escapedNames: true }), 12 * 4_600],
  ["without any", Buffer.from("%PDF-1.7\nnothing to see\n%%EOF"), undefined],
];

for (const [name, data, tokens] of PAGES) {
  test(`a PDF's pages, ${name}: ${tokens ?? "unknown"}`, () => {
    assert.equal(tokensOf(file(data)), tokens);
  });
}

const BOOK = "the quick brown fox jumps over the lazy dog ".repeat(17_046); // 750,000 bytes: 250,000 tokens.

/** How the text of one page is stored. */
const TEXTS: readonly (readonly [string, Buffer])[] = [
  ["plain", pdf({ pages: 1, text: BOOK, packed: "none" })],
  ["deflated", pdf({ pages: 1, text: BOOK })],
  ["deflated and in base 85", pdf({ pages: 1, text: BOOK, packed: "ascii85" })],
  [
    "deflated, in a stream that says it is a picture",
    pdf({ pages: 1, extra: stream(9, "/Subtype /Image", content(BOOK), "flate") }),
  ],
  ["deflated, after a comment that cuts the dictionary", cutDictionary()],
  ["deflated, with a word that ends the stream inside", pdf({ pages: 1, text: `endstream ${BOOK}` })],
];

function content(text: string): Buffer {
  return Buffer.from(`BT (${text}) Tj ET`);
}

function cutDictionary(): Buffer {
  const [head, ...rest] = stream(9, "", content(BOOK), "flate");
  const cut = String(head).replace("/Length", "% 1 0 obj\n/Length");
  return pdf({ pages: 1, extra: [cut, ...rest] });
}

for (const [name, data] of TEXTS) {
  test(`250,000 tokens of text on one page are held, ${name} (${data.length} bytes)`, () => {
    const tokens = tokensOf(file(data));
    assert.ok(tokens !== undefined && tokens >= 250_000 && tokens < 260_000, String(tokens));
  });
}

test("images, fonts and drawings in a PDF do not count as text", () => {
  const noise = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7_919) % 251));
  const lines = Buffer.from("10 20 m 30 40 l S ".repeat(20_000));
  const data = pdf({
    pages: 2,
    extra: [
      ...stream(20, "/Subtype /Image /Width 500 /Height 200", noise, "flate"),
      ...stream(21, "/Subtype /Image /Filter /DCTDecode", noise, "none"),
      ...stream(22, "/Length1 300000", noise, "flate"),
      ...stream(23, "", lines, "flate"),
    ],
  });
  assert.equal(tokensOf(file(data)), 2 * 4_600);
});

test("a PDF that cannot be read is not assumed to be small", () => {
  const hidden: readonly Buffer[] = [
    pdf({ pages: 1, extra: ["9 0 obj\n<< /Filter /LZWDecode /Length 9 >>\nstream\nxxxxxxxxx\nendstream\n"] }),
    pdf({
      pages: 1,
      extra: ["9 0 obj\n<< /Filter /FlateDecode /Length 9 >>\nstream\n\x01\x02 encrypted\nendstream\n"],
    }),
    pdf({ pages: 1, extra: ["<< /Type /Pages /Kids 7 0 R >>"] }),
    pdf({ pages: 1, extra: stream(9, "", Buffer.alloc(9 * 1024 * 1024, "("), "flate") }),
    pdf({
      pages: 1,
      extra: Array.from({ length: 1_500 }, (_, id) => stream(id, "", Buffer.from("x"), "flate")).flat(),
    }),
  ];
  for (const data of hidden) assert.equal(tokensOf(file(data)), undefined, `${data.length} bytes`);
});

test("reading PDFs takes bounded time per request, however they are made", () => {
  const bomb = pdf({ pages: 1, extra: stream(9, "", deflateBomb(), "none") });
  const streams = Buffer.concat([Buffer.from("%PDF-1.7 /Page "), Buffer.from("stream\n".repeat(1_000_000))]);
  const ends = Buffer.concat([Buffer.from("%PDF-1.7 /Page "), Buffer.from("endstream\n".repeat(800_000))]);
  const kids = Buffer.concat([Buffer.from("%PDF-1.7 /Page "), Buffer.from("/Kids [".repeat(1_000_000))]);
  const names = Buffer.concat([Buffer.from("%PDF-1.7 /Page "), Buffer.from("/P#".repeat(2_000_000))]);
  for (const data of [bomb, streams, ends, kids, names]) {
    const before = process.cpuUsage();
    const budget = readingBudget();
    for (let files = 0; files < 3; files++) pdfSize(data, budget);
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 1_500_000, `${data.length} bytes: ${user + system} us`);
  }
});

test("a file that cannot be unpacked to its end uses up the budget: a thousand such files cost no more than one", () => {
  const plain = pdf({ pages: 1 });
  for (const bad of [
    pdf({ pages: 1, extra: stream(9, "", Buffer.alloc(9 * 1024 * 1024), "flate") }),
    pdf({ pages: 1, extra: stream(9, "/Subtype /Image", deflateBomb(), "none") }),
    pdf({
      pages: 1,
      extra: ["9 0 obj\n<< /Filter [/ASCII85Decode /FlateDecode] >>\nstream\n", Buffer.alloc(9 * 1024 * 1024, "z")],
    }),
    pdf({ pages: 1, extra: ["9 0 obj\n<< >>\nstream\n", Buffer.alloc(9 * 1024 * 1024, "(")] }),
  ]) {
    const budget = readingBudget();
    for (let time = 0; time < 4; time++) pdfSize(bad, budget);
    assert.equal(budget.bytes, 0);
    assert.equal(pdfSize(plain, budget), undefined, "nothing more is decompressed");
  }
  const packed = zip([{ text: "x".repeat(9 * 1024 * 1024) }]);
  const good = zip([{ text: "abc" }]);
  assert.deepEqual(
    piecesOf([file(good), file(packed), file(good)]).map(({ tokens }) => tokens),
    [1, undefined, undefined],
  );
});

test("a filter is found after other names, and a PDF with very many names before one is unknown", () => {
  const behind = (names: number) =>
    pdf({ pages: 1, extra: stream(9, "/F1 [ ".repeat(names), content(BOOK), "ascii85") });
  assert.ok((tokensOf(file(behind(20))) ?? 0) >= 250_000);
  assert.equal(tokensOf(file(behind(70))), undefined);
});

test("of one request 3,000 files are read", () => {
  const pieces = piecesOf(Array.from({ length: 3_001 }, () => image(png(100, 100))));
  assert.ok(pieces.slice(0, 3_000).every(({ tokens }) => tokens === 16));
  assert.equal(pieces[3_000]?.tokens, undefined);
});

function deflateBomb(): Buffer {
  return deflateSync(Buffer.alloc(64 * 1024 * 1024));
}

test("for arbitrary bytes after the signature of a PDF, reading never throws", () => {
  const words = fc.constantFrom(
    "/Page",
    "/Kids [",
    "]",
    "stream\n",
    "endstream",
    "/Filter /FlateDecode",
    "/Filter [/ASCII85Decode",
    "obj",
    "~>",
    "(",
    "<",
    "x\x9c",
  );
  const piece = fc.oneof(
    words,
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const tokens = tokensOf(file(Buffer.from(`%PDF-${pieces.join(" ")}`, "latin1")));
      assert.ok(tokens === undefined || tokens > 0);
    }),
    { numRuns: 1_000 },
  );
});

test("audio is held by its seconds: from header and samples, otherwise at the lowest bitrate of speech", () => {
  const audio = (data: Buffer) => ({
    type: "input_audio",
    input_audio: { data: data.toString("base64"), format: "wav" },
  });
  const wav = (rate: number, frame: number, bytes: number) => {
    const data = Buffer.alloc(bytes);
    data.write("RIFF\0\0\0\0WAVEfmt ", 0, "latin1");
    data.writeUInt16LE(1, 20);
    data.writeUInt16LE(frame, 22);
    data.writeUInt32LE(rate, 24);
    data.writeUInt16LE(frame, 32);
    data.writeUInt16LE(8, 34);
    return data;
  };
  assert.equal(tokensOf(audio(wav(16_000, 2, 320_000))), 320); // Ten seconds at 32 tokens.
  assert.equal(tokensOf(audio(wav(0xffffffff, 0xffff, 1_920_000))), 320); // The rate in the header is implausible.
  // Ten seconds by rate and samples, whatever frame size the header gives.
  const falseFrame = wav(16_000, 2, 320_000);
  falseFrame.writeUInt16LE(192, 32);
  assert.equal(tokensOf(audio(falseFrame)), 320);
  const packed = wav(16_000, 2, 320_000);
  packed.writeUInt16LE(0x11, 20);
  assert.equal(tokensOf(audio(packed)), undefined, "compressed samples may have any duration");
  const falseRate = wav(16_000, 2, 320_000);
  falseRate.writeUInt32LE(16_000, 28);
  assert.equal(tokensOf(audio(falseRate)), 640, "the bytes per second give twice the duration");
  // Some readers skip this chunk, others might read it as the format.
  const skipped = wav(192_000, 1, 320_000);
  skipped.write("JUNK", 12, "latin1");
  assert.equal(tokensOf(audio(skipped)), undefined);
  const mp3 = Buffer.concat([Buffer.from([0xff, 0xfb]), Buffer.alloc(59_998)]);
  assert.equal(tokensOf(audio(mp3)), 1_920); // A minute at 8 kbit/s.
  const tag = (size: readonly number[]) => Buffer.from([...Buffer.from("ID3\x04\0\0", "latin1"), ...size]);
  const tagged = Buffer.concat([tag([0, 0, 2, 0]), Buffer.alloc(256), mp3]);
  assert.equal(tokensOf(audio(tagged)), Math.ceil((tagged.length / 1_000) * 32));
  // May last for hours: other codecs, also after a tag that announces MP3, and a tag longer than the file.
  for (const head of ["fLaC", "OggS", "\xff\xf1\x50", "\0\0\0\x20ftypM4A ", "\x1aE\xdf\xa3", "\x01\x01", "\xff\xea"]) {
    const data = Buffer.concat([Buffer.from(head, "latin1"), Buffer.alloc(4_000)]);
    assert.equal(tokensOf(audio(data)), undefined, head);
    assert.equal(tokensOf(audio(Buffer.concat([tag([0, 0, 0, 0]), data]))), undefined, `ID3 ${head}`);
  }
  assert.equal(tokensOf(audio(Buffer.concat([tag([0, 1, 0, 0]), mp3.subarray(0, 9_000)]))), undefined);
});

interface Entry {
  readonly text: string;
  /** The unpacked size in bytes according to the headers. */
  readonly said?: number;
  readonly method?: number;
  /** The method in the entry's local header; the directory's unless given. */
  readonly localMethod?: number;
  readonly flags?: number;
}

/** @param first bytes before the entries. */
function zip(entries: readonly Entry[], first: Buffer = Buffer.alloc(0)): Buffer {
  const local: Buffer[] = [first];
  const directory: Buffer[] = [];
  let at = first.length;
  for (const { text, said = text.length, method = 8, localMethod = method, flags = 0 } of entries) {
    const data = method === 0 ? Buffer.from(text) : deflateRawSync(text);
    const head = Buffer.alloc(30);
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(localMethod, 8);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(flags, 8);
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt32LE(said, 24);
    entry.writeUInt32LE(at, 42);
    local.push(head, data);
    directory.push(entry);
    at += head.length + data.length;
  }
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", 0, "latin1");
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(46 * entries.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...local, ...directory, end]);
}

test("a ZIP file is held by its contents, whatever its headers say", () => {
  const words = "lorem ipsum ".repeat(25_000);
  assert.equal(tokensOf(file(zip([{ text: words }]))), 100_000);
  assert.ok(zip([{ text: words }]).length < 2_000, "the archive is small");
  assert.equal(
    tokensOf(
      file(
        zip([
          { text: words, said: 3 },
          { text: "abc", method: 0 },
        ]),
      ),
    ),
    100_001,
  );
});

test("a ZIP file is recognized whatever bytes precede it", () => {
  const document = zip([{ text: "lorem ipsum ".repeat(25_000) }]);
  const page = pdf({ pages: 1, text: "a", packed: "none" });
  const mp3 = Buffer.concat([Buffer.from([0xff, 0xfb]), Buffer.alloc(998)]);
  for (const first of [page, png(1, 1), mp3, Buffer.from("a,b,c\n".repeat(20_000))]) {
    // Its offsets do not count the bytes before it: some readers correct that.
    assert.equal(tokensOf(file(Buffer.concat([first, document]))), undefined);
    const moved = zip([{ text: "lorem ipsum ".repeat(25_000) }], first);
    assert.equal(tokensOf(file(moved)), 100_000);
  }
  const other = zip([{ text: "abc", method: 0, localMethod: 8 }]);
  assert.equal(tokensOf(file(other)), undefined, "two headers that differ");
});

test("text is held in the charset that its media type names", () => {
  const data = Buffer.from("once more about houses ".repeat(1_000)).toString("base64");
  const held = (charset: string) =>
    tokensOf({ type: "file", file: { file_data: `data:text/plain;charset=${charset};base64,${data}` } }) ?? 0;
  const [plain, wide] = [held("utf-8"), held("utf-16le")];
  assert.ok(plain > 0 && plain < 10_000, `${plain}`);
  assert.ok(wide >= 11_500, `11,500 rare characters, held as ${wide} tokens`);
  assert.equal(held("nobody-s"), plain);
});

test("bytes that are not UTF-8 are held as the replacement characters that they become", () => {
  const bytes = Buffer.alloc(30_000, 0xff);
  const held = (read: Buffer) =>
    tokensOf({ type: "file", file: { file_data: `data:text/plain;base64,${read.toString("base64")}` } });
  assert.equal(held(bytes), held(Buffer.from(bytes.toString())));
  assert.ok((held(bytes) ?? 0) >= 30_000, `${held(bytes)}`);
});

test("dense text in a ZIP file is held at its real density", () => {
  for (const method of [0, 8]) {
    const tokens = tokensOf(file(zip([{ text: "1,2,".repeat(50_000), method }]))) ?? 0;
    assert.ok(tokens > 150_000, `${tokens}`);
  }
});

test("a ZIP file that cannot be read is not assumed to be small", () => {
  const good = zip([{ text: "abc" }]);
  assert.equal(tokensOf(file(good)), 1);
  const nine = "x".repeat(9 * 1024 * 1024);
  const two = zip([{ text: "lorem ipsum ".repeat(25_000) }, { text: "abc" }]);
  /** The same file with another number in its end record. */
  const said = (data: Buffer, at: number, bytes: 2 | 4, value: number) => {
    const other = Buffer.from(data);
    other.writeUIntLE(value, data.length - 22 + at, bytes);
    return other;
  };
  const begins = two.readUInt32LE(two.length - 22 + 16);
  for (const [what, data] of [
    ["beyond the budget", zip([{ text: nine }])],
    ["encrypted", zip([{ text: "abc", flags: 1 }])],
    ["packed in a rare way", zip([{ text: "abc", method: 14 }])],
    ["without a directory", good.subarray(0, -22)],
    ["with nothing in its directory", zip([])],
    [
      "with the end of a larger file before its own",
      Buffer.concat([good.subarray(0, -22), Buffer.from("PK\x06\x07"), Buffer.alloc(16), good.subarray(-22)]),
    ],
    ["that counts fewer entries than it has", said(two, 10, 2, 1)],
    ["that has its directory begin later", said(two, 16, 4, begins + 46)],
    ["that has its directory end sooner", said(two, 12, 4, 46)],
    ["the same, counted so", said(said(said(two, 16, 4, begins + 46), 12, 4, 92), 10, 2, 1)],
    ["with two ends", Buffer.concat([good, good.subarray(-22)])],
    ["cut", Buffer.concat([good.subarray(0, 20), good.subarray(-22)])],
    ["no ZIP file after its mark", Buffer.from(`PK\x03\x04${"\0".repeat(996)}`)],
    ["with too many entries", zip(Array.from({ length: 2_001 }, () => ({ text: "a", method: 0 })))],
  ] as const) {
    assert.equal(tokensOf(file(data)), undefined, what);
  }
});

test("a damaged ZIP file is either read or unknown, and reading it never throws", () => {
  const good = zip([{ text: "lorem ipsum ".repeat(50) }, { text: "abc", method: 0 }]);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 8 }), (changes) => {
      const damaged = Buffer.from(good);
      for (const [at, byte] of changes) damaged[at] = byte;
      const tokens = tokensOf(file(damaged));
      assert.ok(tokens === undefined || tokens >= 0);
    }),
    { numRuns: 1_000 },
  );
});

test("text files are held like text; a file in another compressed format may be of any length", () => {
  assert.equal(tokensOf(file(Buffer.from("a,b,c\n".repeat(500)))), 1_000);
  assert.equal(tokensOf(file(Buffer.from(`\x1f\x8b\x08${"\0".repeat(997)}`, "latin1"))), undefined);
});
