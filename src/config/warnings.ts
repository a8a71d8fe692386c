/** What a good configuration may surprise its users with: `tollgate check` says it, and the gateway starts all the same. */
import { PROTOCOLS, withoutEndpoint } from "../values/protocol.ts";
import type { Settings } from "../values/settings.ts";

/** @returns one sentence for each thing: of upstreams, then of models, in the order of the file. */
export function warningsOf({ upstreams, catalog }: Pick<Settings, "upstreams" | "catalog">): readonly string[] {
  const warnings: string[] = [];
  for (const { name, baseUrl, protocol } of upstreams.values()) {
    const bare = withoutEndpoint(baseUrl);
    if (bare === undefined) continue;
    const asked = `${baseUrl}${PROTOCOLS[protocol].upstreamPath}`;
    warnings.push(`upstreams.${name}.base_url has the endpoint in it: requests will go to ${asked}. Make it ${bare}`);
  }
  for (const { name, routes, price } of catalog.models.values()) {
    if (price.tools.size > 0 || !routes.some((route) => route.protocol === "responses")) continue;
    warnings.push(
      `models.${name}.price.tools has no tool: hosted tools that clients offer (Codex: web_search, in each request) are left out, and refused where they are demanded`,
    );
  }
  return warnings;
}
