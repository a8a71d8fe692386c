/**
 * A receiver of OTLP over HTTP: decodes what is sent to it by the published protobuf definitions (`otlp/`), which the
 * exporter under test has no part in, and gives it in the form that OTLP has for JSON. The only importer of protobufjs.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import protobuf from "protobufjs";

const DEFINITIONS = fileURLToPath(new URL("./otlp/", import.meta.url));
const SERVICE = "opentelemetry/proto/collector/trace/v1/trace_service.proto";
const REQUEST = "opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest";

export interface OtlpReceiver {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string;
  stop(): Promise<void>;
}

/**
 * @param onTraces called with each request, decoded: `{resourceSpans: …}` as in OTLP's JSON form. What it is given has left
 *   the exporter's hands; what cannot be decoded is answered 400, which the exporter drops.
 */
export async function startReceiver(onTraces: (json: string) => void): Promise<OtlpReceiver> {
  const request = definitions().lookupType(REQUEST);
  const server = createServer((incoming, response) => void take(incoming, response));
  const take = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const packed = await buffer(incoming);
    const isTraces = incoming.method === "POST" && incoming.url === "/v1/traces";
    if (!isTraces || incoming.headers["content-type"] !== "application/x-protobuf") {
      response.writeHead(isTraces ? 415 : 404).end();
      return;
    }
    try {
      const bytes = incoming.headers["content-encoding"] === "gzip" ? gunzipSync(packed) : packed;
      onTraces(JSON.stringify(jsonOf(request, bytes)));
    } catch {
      response.writeHead(400).end();
      return;
    }
    // An empty ExportTraceServiceResponse: all of it was taken.
    response.setHeader("content-type", "application/x-protobuf").end();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function definitions(): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_from, name) => join(DEFINITIONS, name);
  return root.loadSync(SERVICE);
}

/** 64-bit integers as texts, enumerations as numbers, ids in hex: what OTLP's JSON form asks for. */
function jsonOf(request: protobuf.Type, bytes: Uint8Array): unknown {
  const plain = request.toObject(request.decode(bytes), { longs: String, bytes: Buffer });
  return withHexIds(plain);
}

const IDS = new Set(["traceId", "spanId", "parentSpanId"]);

function withHexIds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withHexIds);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => {
    if (!(member instanceof Uint8Array)) return [name, withHexIds(member)];
    return [name, Buffer.from(member).toString(IDS.has(name) ? "hex" : "base64")];
  });
  return Object.fromEntries(members);
}
