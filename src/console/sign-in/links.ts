/** Sign-in links: made by an operator for one account, used once, soon over. The secret is behind the `#`, which no log sees. */
import type { SignIns } from "../../store/sign-ins.ts";
import type { AccountTag, RandomBytes } from "../../values/key.ts";
import { digestOf } from "./sessions.ts";

const SECRET_BYTES = 24;
const TOKEN = /^([0-9A-Za-z]{10})\.([A-Za-z0-9_-]{32})$/;

/** Makes the secret part of a link. @throws StoreError */
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

/** Whose link it is; undefined when it is none, was used, or is over. It is used up by this. @throws StoreError */
export async function useLink(store: Pick<SignIns, "takeSignIn">, token: string): Promise<AccountTag | undefined> {
  const [, tag, secret] = TOKEN.exec(token) ?? [];
  if (tag === undefined || secret === undefined) return undefined;
  const taken = await store.takeSignIn(tag as AccountTag, "link", digestOf(secret));
  return taken === undefined ? undefined : (tag as AccountTag);
}
