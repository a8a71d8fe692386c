/** Checks that a request comes from a page of this gateway and not from another site. */
import type { IncomingHttpHeaders } from "node:http";
import { AdminRefusal } from "../refusal.ts";

/** The pages send it with each request. A page of another site cannot without permission (Fetch, CORS preflight). */
const PAGE_HEADER = "x-tollgate-console";

/**
 * For requests that a cookie authenticates.
 * @param publicUrl another address of this gateway
 * @param otherwise what to do about a front behind which the page's own requests look like those of another site
 * @throws AdminRefusal 403 if the browser's headers show, or do not exclude, that another site sends the request
 */
export function assertSameOrigin(headers: IncomingHttpHeaders, publicUrl: string | undefined, otherwise: string): void {
  const { origin, host, "sec-fetch-site": site } = headers;
  const isOwnSite = site === undefined || site === "same-origin";
  const isOwnOrigin = origin === undefined || origin === publicUrl || hostOf(origin) === host;
  if (headers[PAGE_HEADER] === "1" && isOwnSite && isOwnOrigin) return;
  throw new AdminRefusal(
    403,
    "other_site",
    "This request does not come from the console's own page.",
    `Open the console in this window and try again there. Behind a front, ${otherwise}.`,
  );
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
