/** The address under which a browser knows this gateway: passkeys are bound to it, and providers redirect to it. */
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { AdminRefusal } from "../refusal.ts";

export interface PageSite {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The host name, to which passkeys are bound. */
  readonly host: string;
}

/**
 * The configured address; otherwise that of the request, which `assertSameOrigin` has compared with the page's own.
 * @throws AdminRefusal 400 if the requested host is invalid
 */
export function siteOf({ origin, host }: IncomingHttpHeaders, publicUrl: string | undefined): PageSite {
  const asked = publicUrl ?? origin ?? `http://${host}`;
  if (!URL.canParse(asked)) throw new AdminRefusal(400, "bad_host", "The Host header is invalid.", "Send one.");
  const url = new URL(asked);
  return { origin: url.origin, host: url.hostname };
}

/** @throws AdminRefusal 409 at an IP address: browsers bind passkeys only to names */
export function assertNamed({ host }: PageSite): void {
  if (isIP(host.replace(/^\[|\]$/g, "")) === 0) return;
  throw new AdminRefusal(
    409,
    "passkey_needs_name",
    "Passkeys work only with a host name, but this page was opened with an IP address.",
    "Open the console with the gateway's host name, such as localhost on its own machine.",
  );
}
