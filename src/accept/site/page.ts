/**
 * The answer at every path that is not the API's: one static page (docs/failure-model.md row 43). It repeats nothing of
 * the request. Where the operator has a site of their own, `site.ts` passes requests on to it; those that were meant
 * for the API get this page all the same. Without one, a request that was meant for the API or for the admin address gets
 * a 404, so that no program takes the page for its answer; the root alone is always the page.
 */
import { type Refusal, refusal } from "../../values/errors.ts";
import { PROTOCOL_NAMES, PROTOCOLS } from "../../values/protocol.ts";
import type { RequestHeaders } from "../headers.ts";
import { carriesKey } from "../key.ts";
import type { Reply, ReplyHeaders } from "../reply.ts";
import { hintFor, hintHeader, isOfAdmin, isRoot } from "../routes.ts";

/** What the site needs to know of a request; `meantForApi` when it carries a key or JSON. */
interface SiteRequest {
  readonly method: string;
  readonly path: string;
  readonly meantForApi: boolean;
}

const PATHS = PROTOCOL_NAMES.map((name) => PROTOCOLS[name].path);

const PAGE = Buffer.from(
  `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tollgate</title></head>
<body>
<h1>Tollgate</h1>
<p>This is a model gateway. There is nothing to see at this address; programs send <code>POST</code> requests to:</p>
<ul>
${PATHS.map((path) => `<li><code>${path}</code></li>`).join("\n")}
</ul>
<p>If a program brought you here, its base address is wrong: most need one that ends in <code>/v1</code>.</p>
</body>
</html>
`,
  "utf8",
);

const PAGE_HEADERS: ReplyHeaders = Object.freeze({
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "referrer-policy": "no-referrer",
});

/** The page that needs no configuration. */
export function builtInSite(request: SiteRequest, reply: Reply): void {
  const hint = request.meantForApi ? hintOf(request.path) : {};
  reply.whole(200, { ...PAGE_HEADERS, ...hint }, PAGE);
}

/** Why a request gets no page where there is no site; undefined when it gets the page. */
export function nothingThere({ path, meantForApi }: SiteRequest): Refusal | undefined {
  if (isOfAdmin(path)) return refusal("unknown_path", { detail: "Health and metrics are at the admin address alone." });
  if (!meantForApi || isRoot(path)) return undefined;
  const meant = hintFor(path);
  const lacks = "the base address of the client probably lacks /v1";
  const detail = meant === undefined ? `T${lacks.slice(1)}.` : `Use ${meant}: ${lacks}.`;
  return refusal("unknown_path", { detail }, { headers: hintOf(path) });
}

const hintOf = (path: string): Record<string, string> => hintHeader(hintFor(path) ?? PATHS.join(" or "));

/** Whether a request for the site looks like one that missed the API: a POST with a key or JSON. */
export function meantForApi(method: string, headers: RequestHeaders): boolean {
  const json = headers.get("content-type")?.toLowerCase().startsWith("application/json") === true;
  return method === "POST" && (json || carriesKey(headers));
}
