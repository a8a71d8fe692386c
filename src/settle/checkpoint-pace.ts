/** How often a running stream is noted: at its first byte, then every second or 512 tokens. */
const EVERY_MS = 1_000;
/** 512 tokens at 4 bytes each. */
const EVERY_BYTES = 2_048;

/** One per stream. */
export class CheckpointPace {
  #atMs: number | undefined;
  #bytes = 0;

  /**
   * Whether a checkpoint is due; says so once.
   * @param producedBytes what the stream has produced so far.
   */
  isDue(nowMs: number, producedBytes: number): boolean {
    const due =
      this.#atMs === undefined || nowMs - this.#atMs >= EVERY_MS || producedBytes - this.#bytes >= EVERY_BYTES;
    if (!due) return false;
    this.#atMs = nowMs;
    this.#bytes = producedBytes;
    return true;
  }
}
