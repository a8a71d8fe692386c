/** An upstream in the form of the file. */

import type { Catalog } from "../../values/catalog.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { TlsSettings, UpstreamSettings } from "../../values/settings.ts";
import { formatDuration } from "../compile/units.ts";
import { writtenRules } from "./rules.ts";

/**
 * @param catalog its routes hold the upstream's members, rules and `stateful`, which are the same in each of its
 * routes. Without a route these are unknown and have no effect. `prompt_cache` is among the capabilities of each route.
 */
export function writtenUpstream(upstream: UpstreamSettings, catalog: Catalog): JsonObject {
  const { timeouts, queue, health, tls } = upstream;
  const route = [...catalog.models.values()]
    .flatMap(({ routes }) => routes)
    .find((one) => one.upstream === upstream.name);
  return {
    protocol: upstream.protocol,
    base_url: upstream.baseUrl,
    api_key: upstream.apiKey,
    headers: Object.fromEntries(upstream.headers),
    timeouts: {
      connect: formatDuration(timeouts.connectMs),
      first_byte: formatDuration(timeouts.firstByteMs),
      whole: formatDuration(timeouts.wholeMs),
      idle: formatDuration(timeouts.idleMs),
      total: formatDuration(timeouts.totalMs),
    },
    max_concurrency: upstream.maxConcurrency,
    queue: { max: queue.max, wait: formatDuration(queue.waitMs) },
    health: {
      failures: health.failures,
      failure_percent: health.failurePercent,
      outcomes_min: health.outcomesMin,
      window: formatDuration(health.windowMs),
      cool_down: formatDuration(health.coolDownMs),
      cool_down_max: formatDuration(health.coolDownMaxMs),
    },
    on_client_gone: upstream.onClientGone,
    client_gone_grace: formatDuration(upstream.clientGoneGraceMs),
    ...(route && {
      unknown_members: route.passedMembers?.all ? "pass" : "drop",
      pass_members: [...(route.passedMembers?.names ?? [])],
      stateful: route.stateful ?? false,
      rules: writtenRules(route.rules),
    }),
    tls: writtenTls(tls),
  };
}

/** The `tls` section, with the content of the files instead of their paths. */
export function writtenTls({ ca, identity, serverName }: TlsSettings): JsonObject {
  return { ca_file: ca, cert_file: identity?.cert, key_file: identity?.key, server_name: serverName };
}
