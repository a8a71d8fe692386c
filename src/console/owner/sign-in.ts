/** The sign-in methods: a link, a passkey, an OpenID Connect provider, or a front that the operator trusts. */
import type { Store } from "../../store/contract.ts";
import { StoreError } from "../../store/contract.ts";
import type { Account } from "../../store/records.ts";
import type { SignInPlace, SignInRecord } from "../../store/sign-ins.ts";
import type { Catalog } from "../../values/catalog.ts";
import type { AccountTag, RandomBytes } from "../../values/key.ts";
import type { ConsoleSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { quoted } from "../../values/words/shown.ts";
import type { SignInMethodsAnswer } from "../answers/session.ts";
import type { App, AppReply, AppRequest, ConsoleLog } from "../app.ts";
import type { Audit } from "../audit/audit.ts";
import { AdminRefusal, storeRefusal } from "../refusal.ts";
import type { Attempts } from "../sign-in/attempts.ts";
import { LinkToken, PasskeyAnswer } from "../sign-in/bodies.ts";
import type { Challenges } from "../sign-in/challenges.ts";
import { passkeyId, passkeyIn } from "../sign-in/kept-passkeys.ts";
import { useLink } from "../sign-in/links.ts";
import type { Sealer, Sessions, SignInMethod } from "../sign-in/sessions.ts";
import { assertNamed, siteOf } from "../sign-in/site.ts";
import type { Static } from "../vocabulary.ts";

export interface SignInParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly catalog: () => Catalog;
  readonly sealer: Sealer;
  readonly settings: ConsoleSettings;
  readonly sessions: Sessions;
  readonly challenges: Challenges;
  readonly attempts: Attempts;
  readonly audit: Audit;
  /** Receives reports, flat objects without secrets. */
  readonly log: ConsoleLog;
}

/** Adds the sign-in routes to an application. @param api the path of the console's API, without a slash at the end */
export function addSignIn(app: App, api: string, parts: SignInParts): void {
  const { store, settings } = parts;
  const { oidc } = settings;
  app.get(`${api}/sign-in/ways`, async (request) => {
    const label = oidc && (oidc.label ?? new URL(oidc.issuer).host);
    return { oidc: label ?? null, front: namedByFront(request, settings) ?? null } satisfies SignInMethodsAnswer;
  });
  app.post(`${api}/sign-in/link`, { schema: { body: LinkToken } }, async (request, reply) => {
    const { token } = request.body as Static<typeof LinkToken>;
    await startSession(
      parts,
      request,
      reply,
      "link",
      async () => (await accountOf(store, await useLink(store, token))) ?? noLink(),
    );
    return reply.send({ signed_in: true });
  });
  app.post(`${api}/sign-in/front`, async (request, reply) => {
    const name = namedByFront(request, settings);
    await startSession(parts, request, reply, "front", async (named) => {
      if (name === undefined) return noFront();
      named(name);
      return (await store.findAccount(name)) ?? noFront();
    });
    return reply.send({ signed_in: true });
  });
  addPasskeys(app, api, parts);
}

function addPasskeys(app: App, api: string, parts: SignInParts): void {
  const { settings, challenges, attempts } = parts;
  app.post(`${api}/sign-in/passkey/options`, async (request, reply) => {
    attempts.take(request.ip);
    const site = siteOf(request.headers, settings.publicUrl);
    assertNamed(site);
    const { requestOptions } = await import("../sign-in/passkeys.ts");
    const { challenge, sealed } = challenges.make(SIGN_IN);
    return reply.send({ options: await requestOptions(site, challenge), sealed });
  });
  app.post(`${api}/sign-in/passkey`, { schema: { body: PasskeyAnswer } }, async (request, reply) => {
    await startSession(parts, request, reply, "passkey", () => byPasskey(parts, request));
    return reply.send({ signed_in: true });
  });
}

const SIGN_IN = "sign-in";
/** The maximum length of an account name. */
const NAME_CHARS_MAX = 64;

/** An account and the record that proves the sign-in: the session is created only while this record exists. */
interface FoundBy {
  readonly account: Account;
  readonly by: SignInPlace;
}

/** The account whose passkey has signed. @throws AdminRefusal 401 */
async function byPasskey({ store, clock, settings, challenges }: SignInParts, request: AppRequest): Promise<FoundBy> {
  const { sealed, credential } = request.body as Static<typeof PasskeyAnswer>;
  const challenge = challenges.open(sealed, SIGN_IN);
  const tag = Buffer.from(credential.response.userHandle ?? "", "base64url").toString();
  if (challenge === undefined || !/^[0-9A-Za-z]{10}$/.test(tag)) throw noPasskey();
  // Only the account that the passkey names is searched for it.
  const owner = tag as AccountTag;
  const id = passkeyId(credential.id);
  const record = await store.findSignIn(owner, "passkey", id);
  if (record === undefined) throw noPasskey();
  const { id: _, ...kept } = passkeyIn(record);
  const { checkRequest } = await import("../sign-in/passkeys.ts");
  const counter = await checkRequest(siteOf(request.headers, settings.publicUrl), challenge, credential, kept);
  if (counter === undefined || !(await challenges.spend(owner, challenge))) throw noPasskey();
  const account = await store.getAccount(owner);
  if (account === undefined || !(await counted(store, record, counter, clock.wallMs(), owner))) throw noPasskey();
  return { account, by: { kind: "passkey", id } };
}

/** How often a concurrent change of the passkey's record is retried before the sign-in fails. */
const CHANGES_MAX = 8;

/**
 * Saves the new counter of a passkey. Fails if the passkey was removed in the meantime, which must not restore it, or
 * if it was used in the meantime with the same counter or a higher one: one of the two is a copy.
 */
async function counted(
  store: SignInParts["store"],
  first: SignInRecord,
  counter: number,
  usedAtMs: number,
  owner: AccountTag,
): Promise<boolean> {
  const { kind, id } = first;
  let record: SignInRecord | undefined = first;
  for (let tries = 0; record !== undefined && tries < CHANGES_MAX; tries++) {
    const { id: _, ...kept } = passkeyIn(record);
    // Many passkeys do not count and always send 0.
    if (counter <= kept.counter && (counter > 0 || kept.counter > 0)) return false;
    const data = JSON.stringify({ ...kept, counter, usedAtMs });
    if ((await store.keepSignIn(owner, { kind, id, data, only: "known", was: record.data })) === "kept") return true;
    record = await store.findSignIn(owner, kind, id);
  }
  return false;
}

/**
 * Starts a session for the account that `find` returns, and notes the outcome in the audit. Attempts above the limits
 * of an address are refused before `find` runs.
 * @param find gets a function that records the name which a provider or front has given; a refused attempt is noted
 *   under this name
 * @throws AdminRefusal
 */
export async function startSession(
  { sessions, attempts, audit }: SignInParts,
  request: AppRequest,
  reply: AppReply,
  way: SignInMethod,
  find: (named: (name: string) => void) => Promise<Account | FoundBy>,
): Promise<void> {
  const asked = { from: request.ip, requestId: request.id, what: "session.begin" };
  attempts.take(request.ip);
  let target = "";
  try {
    const found = await find((name) => {
      target = quoted(name, NAME_CHARS_MAX);
    });
    const place = { from: request.ip, agent: request.headers["user-agent"] ?? "" };
    const { account, by } = "account" in found ? found : { account: found, by: undefined };
    const cookie = by
      ? await sessions.beginBy(by, account.tag, way, place)
      : await sessions.begin(account.tag, way, place);
    if (cookie === undefined) throw noPasskey();
    reply.header("set-cookie", cookie);
    const who = `owner:${account.name}:${way}`;
    audit.note({ ...asked, who, target: account.name }, { outcome: "done", facts: { way } });
  } catch (error) {
    const refusal = error instanceof StoreError ? storeRefusal(error, undefined) : error;
    const isRefused = refusal instanceof AdminRefusal && refusal.status < 500;
    // A refusal with 429 after `find` means that the person has proved who they are.
    if (isRefused && refusal.status !== 429) attempts.failed(request.ip);
    const cause = refusal instanceof AdminRefusal ? refusal.code : "internal";
    const outcome = isRefused ? "refused" : "unknown";
    audit.note({ ...asked, who: "nobody", target }, { outcome, cause, facts: { way } });
    throw refusal;
  }
}

/**
 * The account name from the trusted front. The header is present only if a trusted front has sent the request
 * (owner.ts). It counts only under the configured host: otherwise a page that points its own name to this gateway (DNS
 * rebinding), in a browser on the front's machine, could send it.
 */
export function namedByFront(
  { headers }: AppRequest,
  { trustedHeader, publicUrl }: Pick<ConsoleSettings, "trustedHeader" | "publicUrl">,
): string | undefined {
  const named = trustedHeader && headers[trustedHeader];
  if (typeof named !== "string" || named === "") return undefined;
  // Fronts leave ports out.
  return publicUrl === undefined || siteOf({ host: headers.host }, undefined).host === new URL(publicUrl).hostname
    ? named
    : undefined;
}

async function accountOf(store: Store, tag: AccountTag | undefined): Promise<Account | undefined> {
  return tag && store.getAccount(tag);
}

function noLink(): never {
  throw new AdminRefusal(
    401,
    "link_is_over",
    "This sign-in link is not valid: it was already used, or it has expired.",
    "Ask your operator for another one; each works once.",
  );
}

function noPasskey(): AdminRefusal {
  return new AdminRefusal(
    401,
    "passkey_refused",
    "This passkey was not accepted: it was removed, belongs to another address, or took too long.",
    "Try again, or ask your operator for a sign-in link.",
  );
}

function noFront(): never {
  throw new AdminRefusal(
    401,
    "front_names_nobody",
    "The front of this gateway names an account that does not exist.",
    "Ask your operator for an account of that name.",
  );
}
