/** A request as Node has parsed it, before anything is decided about it: what each way of answering needs. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Protocol } from "../values/protocol.ts";
import type { RequestId } from "../values/request-id.ts";
import { RequestBody } from "./body.ts";
import type { ListenerOptions } from "./contract.ts";
import { RequestHeaders } from "./headers.ts";
import { protocolOfTarget, splitTarget } from "./routes.ts";

export interface ParsedRequest {
  readonly req: IncomingMessage;
  readonly headers: RequestHeaders;
  readonly body: RequestBody;
  /** Whether the client waits for 100 Continue before it sends its body. */
  readonly awaitsContinue: boolean;
  /** Whether the client sends its body, or may do so at any moment. */
  readonly bodyComes: () => boolean;
  /** In whose shape errors are written. */
  readonly protocol: Protocol;
  readonly id: RequestId;
  /** When the head had been read, on the monotonic clock. */
  readonly receivedAtMs: number;
}

export function parseRequest(
  req: IncomingMessage,
  res: ServerResponse,
  { bodyBytesMax, newRequestId, clock }: Pick<ListenerOptions, "bodyBytesMax" | "newRequestId" | "clock">,
  awaitsContinue: boolean,
): ParsedRequest {
  const headers = new RequestHeaders(req.rawHeaders);
  let asked = !awaitsContinue;
  const body = new RequestBody(req, headers, bodyBytesMax, () => {
    if (!asked && !res.headersSent) res.writeContinue();
    asked = true;
  });
  return {
    req,
    headers,
    body,
    awaitsContinue,
    // Some clients do not wait for long, and send their body unasked.
    bodyComes: () => asked || req.readableDidRead,
    protocol: protocolOfTarget(splitTarget(req.url ?? "").path),
    id: newRequestId(),
    receivedAtMs: clock.monotonicMs(),
  };
}
