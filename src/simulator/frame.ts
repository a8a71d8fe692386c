/** One server-sent event before it is serialized. */

export interface Frame {
  readonly event?: string;
  /** JSON payload; on responses it gets its `sequence_number` when it is written. */
  readonly json?: Readonly<Record<string, unknown>>;
  /** A payload that is not JSON, sent unchanged. */
  readonly text?: string;
  readonly comment?: string;
}

/** How a protocol writes the frames that faults and heartbeats need. */
export interface StreamShape {
  readonly frames: readonly Frame[];
  readonly numbered: boolean;
  ping(): Frame;
  /** A valid event without content, of at least this many bytes. */
  padding(bytes: number): Frame;
  /** The protocol's own mid-stream error. */
  failure(fault: { type?: string; code?: string; message?: string; failed?: boolean }): Frame[];
}

/** The text of a frame; `number` is its sequence number, if any. */
export function frameText(frame: Frame, lineEnd: string, number?: number): string {
  const lines: string[] = [];
  if (frame.comment !== undefined) lines.push(`: ${frame.comment}`);
  if (frame.event !== undefined) lines.push(`event: ${frame.event}`);
  if (frame.json !== undefined) lines.push(`data: ${JSON.stringify(numbered(frame.json, number))}`);
  if (frame.text !== undefined) lines.push(`data: ${frame.text}`);
  return lines.map((line) => line + lineEnd).join("") + lineEnd;
}

function numbered(json: Readonly<Record<string, unknown>>, number: number | undefined): object {
  if (number === undefined) return json;
  const { type, ...rest } = json;
  return { type, sequence_number: number, ...rest };
}
