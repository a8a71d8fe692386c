/**
 * Decompresses a body that an upstream compressed although we asked for identity (docs/failure-model.md row C7). The
 * output is bounded: `pause` stops it within one zlib chunk, and a decompression bomb ends at DECODED_BYTES_MAX.
 */
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import type { Encoding } from "./reply-head.ts";

/** Maximum of decoded bytes of one body; a larger compressed stream is a decompression bomb. */
const DECODED_BYTES_MAX = 256 * 1024 * 1024;

interface DecoderEvents {
  data(chunk: Uint8Array): void;
  /** `write` may be called again after it returned false. */
  drained(): void;
  end(): void;
  failed(reason: string): void;
}

const OPEN: Readonly<Record<Encoding, () => Transform>> = {
  gzip: () => createGunzip(),
  br: () => createBrotliDecompress(),
  deflate: () => createInflate(),
  zstd: () => createZstdDecompress(),
};

export class Decoder {
  readonly #stream: Transform;
  #bytes = 0;

  constructor(encoding: Encoding, events: DecoderEvents) {
    this.#stream = OPEN[encoding]();
    this.#stream.on("data", (chunk: Buffer) => {
      this.#bytes += chunk.length;
      if (this.#bytes <= DECODED_BYTES_MAX) {
        events.data(chunk);
      } else {
        this.destroy();
        events.failed("the decompressed body is too large");
      }
    });
    this.#stream.on("drain", () => events.drained());
    this.#stream.on("end", () => events.end());
    this.#stream.on("error", () => events.failed(`the body is not ${encoding}`));
  }

  /** @returns false if the upstream should wait for `drained`. */
  write(chunk: Uint8Array): boolean {
    return this.#stream.write(chunk);
  }

  end(): void {
    this.#stream.end();
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  destroy(): void {
    this.#stream.destroy();
  }
}
