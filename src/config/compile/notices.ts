/** The `notices` section: the receiver, the signing secrets and the kinds of notices. */
import { Secret } from "../../values/secret.ts";
import { NOTICE_KINDS, type NoticeSettings } from "../../values/settings.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import type { ConfigFile } from "../schema/schema.ts";
import { isUnencryptedRemote, type ParsedText } from "./addresses.ts";
import { wrongPort } from "./ports.ts";
import { readUsd } from "./prices.ts";
import type { Loose, Reader } from "./reader.ts";

type NoticesFile = Loose<NonNullable<ConfigFile["notices"]>>;

/** @returns undefined if no notices are sent. */
export function readNotices(reader: Reader, notices: NoticesFile | undefined): NoticeSettings | undefined {
  if (notices === undefined) return undefined;
  const { url, secrets = [], kinds = NOTICE_KINDS, balance_below: below, allow_http: mayBePlain = false } = notices;
  const lists = { secrets, kinds };
  for (const name of ["secrets", "kinds"] as const)
    if (lists[name].length === 0) reader.refuse(["notices", name], "must have at least one entry");
  const balanceBelow = readUsd(reader, ["notices", "balance_below"], below);
  return {
    url: reader.read(["notices", "url"], url, (text) => readReceiver(text, mayBePlain)) ?? new Secret(""),
    secrets: secrets.flatMap((secret, index) => {
      const read = reader.read(["notices", "secrets", index], secret, readWebhookSecret);
      return read === undefined ? [] : read;
    }),
    kinds: new Set(kinds.filter((kind) => kind !== undefined)),
    balanceBelowNano: balanceBelow === undefined ? undefined : Number(balanceBelow),
    cardEndsWithinMs: reader.durationMs(
      ["notices", "card_ends_within"],
      notices.card_ends_within,
      DEFAULTS.cardEndsWithinMs,
      LIMITS.cardEndsWithinMsMax,
    ),
  };
}

/** The receiver's URL. It is kept as a secret, because its path and query may contain one. */
function readReceiver(text: string, mayBePlain: boolean): ParsedText<Secret> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return { wrong: "must be an https:// URL" };
  if (url.username || url.password)
    return { wrong: "must not contain credentials, because the signature identifies the sender" };
  if (url.hash) return { wrong: "must not have a fragment" };
  if (!mayBePlain && isUnencryptedRemote(url.href)) {
    return { wrong: "must be https:// unless it is on this machine; set allow_http to allow http://" };
  }
  const wrong = wrongPort(url.href);
  return wrong === undefined ? { value: new Secret(url.href) } : { wrong };
}

/** `whsec_` and the key in base64, 24 to 64 bytes, as in Standard Webhooks. */
function readWebhookSecret(text: string): ParsedText<Secret> {
  const [, encoded = ""] = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/.exec(text) ?? [];
  const bytes = Buffer.from(encoded, "base64").length;
  if (bytes >= LIMITS.webhookKeyBytesMin && bytes <= LIMITS.webhookKeyBytesMax) return { value: new Secret(text) };
  const size = `${LIMITS.webhookKeyBytesMin} to ${LIMITS.webhookKeyBytesMax} bytes`;
  return { wrong: `must be whsec_ and ${size} in base64; echo "whsec_$(openssl rand -base64 32)" generates one` };
}
