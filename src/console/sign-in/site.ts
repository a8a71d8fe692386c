/** Under what address a browser knows this gateway: what passkeys are bound to, and where a provider sends people back to. */
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { AdminRefusal } from "../refusal.ts";

export interface PageSite {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The host's name: what passkeys are bound to. */
  readonly host: string;
}

/**
 * The configured address; else the one that was asked, which `assertSameOrigin` has compared with the page's own.
 * @throws AdminRefusal 400 when the host that was asked is none.
 */
export function siteOf({ origin, host }: IncomingHttpHeaders, publicUrl: string | undefined): PageSite {
  const asked = publicUrl ?? origin ?? `http://${host}`;
  if (!URL.canParse(asked)) throw new AdminRefusal(400, "bad_host", "The Host header names no host.", "Send one.");
  const url = new URL(asked);
  return { origin: url.origin, host: url.hostname };
}

/** @throws AdminRefusal 409 at an address without a name: browsers bind passkeys to names only. */
export function assertNamed({ host }: PageSite): void {
  if (isIP(host.replace(/^\[|\]$/g, "")) === 0) return;
  throw new AdminRefusal(
    409,
    "passkey_needs_name",
    "Passkeys work only with a host name, but this page was opened with an IP address.",
    "Open the console with the gateway's host name, such as localhost on its own machine.",
  );
}
