/** What a good configuration may surprise its users with: `tollgate check` says it, and the gateway starts all the same. */
import { type Catalog, groupServes } from "../values/catalog.ts";
import { PROTOCOLS, withoutEndpoint } from "../values/protocol.ts";
import type { Settings } from "../values/settings.ts";

type Judged = Pick<Settings, "upstreams" | "catalog">;

/** @returns one sentence for each thing: of upstreams, then of models, in the order of the file. */
export function warningsOf(settings: Judged): readonly string[] {
  return [...ofUpstreams(settings), ...ofModels(settings.catalog)];
}

function* ofUpstreams({ upstreams, catalog }: Judged): Generator<string> {
  const asked = new Set([...catalog.models.values()].flatMap(({ routes }) => routes.map(({ upstream }) => upstream)));
  for (const { name, baseUrl, protocol } of upstreams.values()) {
    if (!asked.has(name)) {
      yield `upstreams.${name} is in no route: it is never asked; name it under models.NAME.routes`;
    }
    const bare = withoutEndpoint(baseUrl);
    if (bare === undefined) continue;
    const url = `${baseUrl}${PROTOCOLS[protocol].upstreamPath}`;
    yield `upstreams.${name}.base_url has the endpoint in it: requests will go to ${url}. Make it ${bare}`;
  }
}

function* ofModels({ models, groups }: Catalog): Generator<string> {
  for (const { name, routes, price } of models.values()) {
    if (![...groups.values()].some((group) => groupServes(group, name))) {
      yield `models.${name} is in no group: no key can use it; name it under groups.NAME.models`;
    }
    if (price.tools.size > 0 || !routes.some((route) => route.protocol === "responses")) continue;
    yield `models.${name}.price.tools has no tool: hosted tools that clients offer (Codex: web_search, in each request) are left out, and refused where they are demanded`;
  }
}
