/**
 * Sign-in links: created by an operator for one account, valid once and for a short time. The secret is after the `#`,
 * so it is in no log.
 */
import type { SignIns } from "../../store/sign-ins.ts";
import type { AccountTag, RandomBytes } from "../../values/key.ts";
import { digestOf } from "./sessions.ts";

const SECRET_BYTES = 24;
const TOKEN = /^([0-9A-Za-z]{10})\.([A-Za-z0-9_-]{32})$/;

/** Creates a link's secret part. @throws StoreError */
export async function makeLink(
  store: Pick<SignIns, "keepSignIn">,
  random: RandomBytes,
  tag: AccountTag,
  lastsMs: number,
): Promise<string> {
  const secret = Buffer.from(random(SECRET_BYTES)).toString("base64url");
  await store.keepSignIn(tag, { kind: "link", id: digestOf(secret), data: "{}", lastsMs });
  return `${tag}.${secret}`;
}

/**
 * The account of the link, which is used up by this call; undefined if it is invalid, was used, or has expired.
 * @throws StoreError
 */
export async function useLink(store: Pick<SignIns, "takeSignIn">, token: string): Promise<AccountTag | undefined> {
  const [, tag, secret] = TOKEN.exec(token) ?? [];
  if (tag === undefined || secret === undefined) return undefined;
  const taken = await store.takeSignIn(tag as AccountTag, "link", digestOf(secret));
  return taken === undefined ? undefined : (tag as AccountTag);
}
