/** Whether a browser asks for a page of this very gateway: what another site makes it send is refused. */
import type { IncomingHttpHeaders } from "node:http";
import { AdminRefusal } from "../refusal.ts";

/** Sent by the pages with each request: another site's page cannot, without being asked first (Fetch, CORS preflight). */
const PAGE_HEADER = "x-tollgate-console";

/**
 * For requests that a cookie lets in.
 * @param publicUrl another address that is this gateway's own.
 * @param otherwise what to do about a front through which the page's own requests look like another site's.
 * @throws AdminRefusal 403 when a browser says, or does not deny, that another site asks.
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
