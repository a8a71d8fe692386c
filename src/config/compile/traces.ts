/** The `traces` section: where spans go, how many, and which upstreams get a `traceparent`. */
import type { TraceSettings } from "../../values/settings.ts";
import { DEFAULTS } from "../defaults.ts";
import type { ConfigFile } from "../schema/schema.ts";
import { readBaseUrl } from "./addresses.ts";
import { readHeaderValues } from "./headers.ts";
import type { Loose, Reader } from "./reader.ts";

/** What the exporter sets itself. */
const OWNED = {
  names: new Set(["content-type", "content-length", "content-encoding", "host", "user-agent"]),
  why: "is set by the exporter and cannot be configured",
};

/** @returns undefined when no traces are wanted. */
export function readTraces(reader: Reader, file: Loose<ConfigFile>): TraceSettings | undefined {
  const { traces } = file;
  if (traces === undefined) return undefined;
  const upstreams = file.upstreams ?? {};
  for (const [index, name] of (traces.propagate ?? []).entries())
    reader.reference(["traces", "propagate", index], name, "upstream", upstreams);
  return {
    endpoint: reader.read(["traces", "endpoint"], traces.endpoint, readBaseUrl) ?? "",
    headers: readHeaderValues(reader, ["traces", "headers"], traces.headers ?? {}, OWNED),
    sample: traces.sample ?? DEFAULTS.traceSample,
    serviceName: traces.service_name ?? DEFAULTS.traceServiceName,
    propagate: new Set((traces.propagate ?? []).filter((name) => name !== undefined)),
    exportEveryMs: DEFAULTS.traceExportEveryMs,
  };
}
