/**
 * A receiver of OTLP over HTTP. It decodes requests by the published protobuf definitions (`otlp/`), independently of
 * the exporter under test, into the JSON form of OTLP. Only this file imports protobufjs.
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
 * @param onTraces called with each decoded request: `{resourceSpans: …}` as in the JSON form of OTLP. A request that
 * cannot be decoded is answered with 400, and the exporter drops it.
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
    // An empty ExportTraceServiceResponse: everything was accepted.
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

/** 64-bit integers as strings, enumerations as numbers, ids in hex, as the JSON form of OTLP requires. */
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
