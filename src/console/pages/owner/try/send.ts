/** Sends a conversation to the gateway's own API, and reads the answer as a stream. */
import { type Piece, type ProtocolName, SPOKEN, type TrialConversation } from "./protocols.ts";

/** How an answer that was not refused ended. */
type StreamEnding = "complete" | "cut" | "stopped";

/** A request without an answer of a model. */
export interface RefusedSend {
  readonly status: number;
  readonly cause: string;
  readonly message: string;
  readonly remedy: string;
}

interface SentConversation {
  readonly requestId: string | undefined;
  readonly refused: RefusedSend | undefined;
  readonly ending: StreamEnding;
}

interface SendOptions {
  readonly key: string;
  readonly signal: AbortSignal;
  /** Called with the request's id as soon as it is known. */
  readonly onAnswered: (requestId: string | undefined) => void;
  readonly onPiece: (piece: Piece) => void;
}

/** Rejects only if no answer arrived. */
export async function send(
  protocol: ProtocolName,
  conversation: TrialConversation,
  options: SendOptions,
): Promise<SentConversation> {
  const { path, headersOf, bodyOf } = SPOKEN[protocol];
  const response = await fetch(path, {
    method: "POST",
    headers: { ...headersOf(options.key), "content-type": "application/json" },
    body: JSON.stringify(bodyOf(conversation)),
    // Only the key counts here; the console's cookie is not sent.
    credentials: "omit",
    signal: options.signal,
  });
  const requestId = response.headers.get("x-request-id") ?? undefined;
  options.onAnswered(requestId);
  if (!response.ok || !response.body) return { requestId, refused: await refusalOf(response), ending: "complete" };
  try {
    const isWhole = await readEvents(response.body, protocol, options.onPiece);
    return { requestId, refused: undefined, ending: isWhole ? "complete" : "cut" };
  } catch (error) {
    if (options.signal.aborted) return { requestId, refused: undefined, ending: "stopped" };
    if (error instanceof TypeError) return { requestId, refused: undefined, ending: "cut" };
    throw error;
  }
}

async function refusalOf(response: Response): Promise<RefusedSend> {
  const text = await response.text();
  const words = errorIn(text);
  return {
    status: response.status,
    cause: words.cause ?? words.type ?? "",
    message: words.message ?? text,
    remedy: words.remedy ?? "",
  };
}

interface ErrorMembers {
  readonly cause?: string;
  readonly type?: string;
  readonly message?: string;
  readonly remedy?: string;
}

function errorIn(text: string): ErrorMembers {
  try {
    return (JSON.parse(text) as { readonly error?: ErrorMembers }).error ?? {};
  } catch {
    return {};
  }
}

/** @returns whether the stream ended with its terminal event */
async function readEvents(
  body: ReadableStream<Uint8Array>,
  protocol: ProtocolName,
  onPiece: (piece: Piece) => void,
): Promise<boolean> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  let isWhole = false;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return isWhole;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = eventIn(line);
      if (!event) continue;
      const piece = SPOKEN[protocol].piecesOf(event);
      isWhole ||= piece.isEnd === true || piece.failed !== undefined;
      onPiece(piece);
    }
  }
}

function eventIn(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.startsWith("data:")) return undefined;
  try {
    const value: unknown = JSON.parse(line.slice(5));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
