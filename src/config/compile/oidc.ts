/** Reads the OpenID Connect providers for key owners and operators. */
import { Secret } from "../../values/secret.ts";
import type { OidcSettings, OperatorOidcSettings } from "../../values/settings.ts";
import type { ConfigPath } from "../problems.ts";
import type { ConfigFile } from "../schema/schema.ts";
import { isUnencryptedRemote, type ParsedText, readBaseUrl, readOrigin } from "./addresses.ts";
import type { KnownNames } from "./catalog.ts";
import { wrongPort } from "./ports.ts";
import type { Loose, Reader } from "./reader.ts";

type OidcFile = Loose<NonNullable<NonNullable<ConfigFile["console"]>["oidc"]>>;

/** @returns undefined if `console.oidc` is not set. */
export function readOidc(
  reader: Reader,
  path: ConfigPath,
  file: OidcFile | undefined,
  known: KnownNames,
): OidcSettings | undefined {
  if (file === undefined) return undefined;
  reader.reference([...path, "plan"], file.plan, "plan", known.plans);
  const { issuer, client_id: clientId = "", client_secret: secret = "", claim = "", label } = file;
  return {
    issuer: reader.read([...path, "issuer"], issuer, readIssuer) ?? "",
    clientId,
    clientSecret: new Secret(secret),
    claim,
    createAccounts: file.create_accounts ?? false,
    plan: file.plan,
    label,
  };
}

/** @returns undefined if operators can sign in only with the admin token. */
export function readOperatorOidc(reader: Reader, file: Loose<ConfigFile>): OperatorOidcSettings | undefined {
  const operator = file.console?.operator;
  if (operator === undefined) return undefined;
  const { oidc = {}, public_url: publicUrl } = operator;
  const { issuer, client_id: clientId = "", client_secret: secret = "", claim = "", label, allowed = [] } = oidc;
  const path = ["console", "operator", "oidc"];
  if (allowed.length === 0) reader.refuse([...path, "allowed"], "must have at least one entry");
  return {
    oidc: {
      issuer: reader.read([...path, "issuer"], issuer, readIssuer) ?? "",
      clientId,
      clientSecret: new Secret(secret),
      claim,
      createAccounts: false,
      plan: undefined,
      label,
    },
    allowed: allowed.filter((value) => value !== undefined),
    publicUrl: reader.read(["console", "operator", "public_url"], publicUrl, readOrigin),
  };
}

/**
 * The issuer decides who may sign in, so its answers must not be changed on the way: https:// is required. A trailing
 * slash is part of its name.
 */
function readIssuer(text: string): ParsedText<string> {
  const read = readBaseUrl(text);
  if ("wrong" in read) return read;
  if (isUnencryptedRemote(text)) return { wrong: "must be https:// unless it is on this machine" };
  const wrong = wrongPort(text);
  return wrong === undefined ? { value: text } : { wrong };
}
