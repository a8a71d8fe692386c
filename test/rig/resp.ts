/** The part of RESP2 that a proxy needs: where a message ends. */

const CRLF = Buffer.from("\r\n");

/** @returns the index after the message that begins at `from`, or -1 while the message is not complete. */
export function endOfMessage(bytes: Buffer, from: number): number {
  const lineEnd = bytes.indexOf(CRLF, from);
  if (lineEnd < 0) return -1;
  const kind = String.fromCharCode(bytes[from] as number);
  const after = lineEnd + CRLF.length;
  if (kind !== "$" && kind !== "*") return after;
  const count = Number(bytes.toString("latin1", from + 1, lineEnd));
  if (count < 0) return after;
  if (kind === "$") return bytes.length < after + count + CRLF.length ? -1 : after + count + CRLF.length;
  let end = after;
  for (let i = 0; i < count && end >= 0; i++) end = endOfMessage(bytes, end);
  return end;
}

/** Splits a stream into messages, however its bytes arrive. */
export class Messages {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): Buffer[] {
    let bytes = Buffer.concat([this.#rest, chunk]);
    const messages: Buffer[] = [];
    for (let end = endOfMessage(bytes, 0); end > 0; end = bytes.length === 0 ? -1 : endOfMessage(bytes, 0)) {
      messages.push(bytes.subarray(0, end));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    return messages;
  }
}
