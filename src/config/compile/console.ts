/** Reads the `console` section: the pages for key owners. */
import type { ConsoleSettings } from "../../values/settings.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import type { ConfigFile } from "../schema/schema.ts";
import { readBaseUrl, readOrigin } from "./addresses.ts";
import type { KnownNames } from "./catalog.ts";
import { readOidc } from "./oidc.ts";
import type { Loose, Reader } from "./reader.ts";

/** Headers that already have another meaning between a front and this gateway, so they cannot name an account. */
const TAKEN: ReadonlySet<string> = new Set([
  "x-api-key",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-real-ip",
]);

/** @returns undefined if the pages are not served. */
export function readConsole(reader: Reader, file: Loose<ConfigFile>, known: KnownNames): ConsoleSettings | undefined {
  const section: Loose<NonNullable<ConfigFile["console"]>> = file.console ?? {};
  const path = section.path ?? DEFAULTS.consolePath;
  if (/^\/(?:v1|admin|healthz|readyz|metrics)(?:\/|$)/i.test(path)) {
    reader.refuse(["console", "path"], "must not be a path of the API or of the admin address");
  }
  if (section.trusted_header !== undefined && (file.trust_proxy ?? []).length === 0) {
    reader.refuse(["console", "trusted_header"], "needs trust_proxy: without a trusted front, the header is ignored");
  }
  const trustedHeader = section.trusted_header?.toLowerCase();
  if (trustedHeader !== undefined && TAKEN.has(trustedHeader)) {
    reader.refuse(
      ["console", "trusted_header"],
      "must not be a header that has another meaning; use a separate one, such as x-forwarded-user, that the front sets or removes on every request",
    );
  }
  const settings: ConsoleSettings = {
    path,
    publicUrl: reader.read(["console", "public_url"], section.public_url, readOrigin),
    sessionMs: span(reader, "session", section.session, DEFAULTS.consoleSessionMs, LIMITS.consoleSessionMsMax),
    invitationMs: span(
      reader,
      "invitation",
      section.invitation,
      DEFAULTS.consoleInvitationMs,
      LIMITS.consoleInvitationMsMax,
    ),
    oidc: readOidc(reader, ["console", "oidc"], section.oidc, known),
    trustedHeader,
    support: {
      email: section.support?.email,
      url: reader.read(["console", "support", "url"], section.support?.url, readBaseUrl),
    },
  };
  // A site may have its own pages at any path.
  return (section.enabled ?? file.site === undefined) ? settings : undefined;
}

function span(reader: Reader, name: string, text: string | undefined, defaultMs: number, maxMs: number): number {
  return reader.durationMs(["console", name], text, defaultMs, maxMs);
}
