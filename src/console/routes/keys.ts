/**
 * Keys: create (the only answer with the key itself), list, move to another group, name, set expiry, rotate, suspend,
 * resume, revoke.
 */

import { StoreError } from "../../store/contract.ts";
import { KEY_VALUES_MAX } from "../../store/names.ts";
import type { Key, KeyChange, Page } from "../../store/records.ts";
import { newKey } from "../../values/key.ts";
import { COMMAND } from "../../values/program/program.ts";
import type { Clock } from "../../values/time.ts";
import { KeyPage, KeyShape, ListedKeyShape, NewKeyShape } from "../answers/answers.ts";
import { showKey, showListedKey } from "../answers/present.ts";
import { readInstant, readLimit } from "../input/parameters.ts";
import { accountNamed } from "../named-accounts.ts";
import { keyNamed, keyOf, ownerOf } from "../named-keys.ts";
import { AdminRefusal, accountClosed, keyRevoked, malformed, noSuchAccount, noSuchKey } from "../refusal.ts";
import { assertConfigured } from "../suggest.ts";
import {
  AccountPath,
  Configured,
  closed,
  IdempotencyId,
  Instant,
  KeyId,
  KeyName,
  KeyPath,
  pageSize,
  type Static,
  Type,
} from "../vocabulary.ts";
import { type AuditFacts, type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** Maximum number of keys per page. */
const KEYS_PAGE_MAX = 200;

const Search = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "part of the name, in any case, 1 to 64 characters",
  "x-remedy": "Leave it out to list all keys.",
  examples: ["ali"],
});

const KeysQuery = Type.Object(
  {
    search: Type.Optional(Search),
    group: Type.Optional(Configured),
    status: Type.Optional(
      Type.Unsafe<"normal" | "suspended" | "revoked">({
        type: "string",
        enum: ["normal", "suspended", "revoked"],
        description: "`normal`, `suspended` or `revoked`",
        "x-remedy": "Leave it out for keys of any status.",
      }),
    ),
    cursor: Type.Optional(KeyId),
    limit: Type.Optional(pageSize(KEYS_PAGE_MAX)),
  },
  closed,
);

const NewKey = Type.Object(
  {
    group: Configured,
    name: Type.Optional(KeyName),
    expires_at: Type.Optional(Instant),
    idempotency_id: Type.Optional(IdempotencyId),
  },
  closed,
);

/** How long a key's old value works: the default and the maximum. */
const OVERLAP_S = 86_400;

const OVERLAP_S_MAX = 30 * 86_400;

const NewKeyValue = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: OVERLAP_S_MAX,
        description: `how long the old value still works, a whole number of seconds from 0 to ${OVERLAP_S_MAX}`,
        "x-remedy": "Send at most 30 days in seconds; 0 ends the old value at once.",
        examples: [OVERLAP_S],
      }),
    ),
  },
  closed,
);

const NewKeyName = Type.Object({ name: Type.Union([KeyName, Type.Null()]) }, closed);

const NewKeyEnd = Type.Object({ expires_at: Type.Union([Instant, Type.Null()]) }, closed);

const NewGroup = Type.Object({ group: Configured }, closed);

export function keyRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store } = parts;
  return [
    route({
      method: "POST",
      path: "/accounts/:name/keys",
      id: "createKey",
      summary: "Create a key; the key is shown only in this answer",
      description:
        "With an `idempotency_id`, a repeat creates no second key: it gets 409 with the id of the key that the first request created, " +
        "so that a key that was lost in transit can be revoked. Without one, a repeat creates another key.",
      answers: { 201: NewKeyShape },
      refusals: {
        404: "`unknown_account`.",
        409: "`key_exists`: already created under this `idempotency_id`. `account_closed`.",
      },
      params: AccountPath,
      body: NewKey,
      write: {
        what: "key.create",
        target: ({ params }) => params.name,
        facts: ({ body }) => ({ group: body.group, ...named(body.idempotency_id) }),
        whenUnknown:
          "A key that nobody has seen may exist. With an idempotency_id: repeat the request, and revoke the key that it " +
          "names. Without: list the account's keys, revoke the newest, and create another.",
      },
      async handle({ params, body }) {
        assertConfigured("group", body.group, parts.catalog().groups.keys());
        const expiresAtMs = endOf(body.expires_at ?? null, parts.clock);
        const account = await accountNamed(store, params.name);
        const { idempotency_id: once, name } = body;
        const fresh = newKey(account.tag, parts.random, once);
        if (account.status === "closed") throw accountClosed(params.name);
        const before = once === undefined ? undefined : await keyOf(store, account.tag, fresh.id);
        if (before !== undefined) throw keyExists(before);
        const record = { id: fresh.id, hash: fresh.hash, group: body.group, name };
        const ends = expiresAtMs === "never" ? undefined : expiresAtMs;
        const key = await twice(() => store.createKey(account.tag, { ...record, expiresAtMs: ends }));
        if (key === undefined)
          throw (await store.getAccount(account.tag)) ? accountClosed(params.name) : noSuchAccount(params.name);
        // If two requests ran at the same time, the store keeps one of the two values.
        const isOurs = once === undefined || (await store.readKey(account.tag, fresh.hash)) !== undefined;
        if (!isOurs) throw keyExists(key);
        // This is the only answer with the key.
        return { status: 201, body: { ...showKey(key, account.name), key: fresh.text }, audit: { key_id: key.id } };
      },
    }),
    route({
      method: "GET",
      path: "/accounts/:name/keys",
      id: "listKeys",
      summary: "List an account's keys, oldest first, without the keys themselves",
      description: "`search`, `group` and `status` narrow the result; a key must match all of them.",
      answers: { 200: KeyPage },
      refusals: { 404: "`unknown_account`." },
      params: AccountPath,
      query: KeysQuery,
      async handle({ params, query }) {
        const limit = readLimit(query.limit, KEYS_PAGE_MAX);
        const account = await accountNamed(store, params.name);
        const found = (await store.listKeys(account.tag)).filter((key) => fits(key, query));
        const { items, next } = pageOf(found, query.cursor, limit);
        return {
          status: 200,
          body: {
            items: items.map((key) => showListedKey(key, account.name, parts.clock.wallMs())),
            next: next ?? null,
          },
        };
      },
    }),
    showRoute(parts),
    ...changeRoutes(parts),
    rotateRoute(parts),
    route({
      method: "POST",
      path: "/keys/:id/revoke",
      id: "revokeKey",
      summary: "Revoke a key permanently, effective from its next request",
      answers: { 200: KeyShape },
      refusals: { 404: "`unknown_key`." },
      params: KeyPath,
      write: {
        what: "key.revoke",
        target: ({ params }) => params.id,
        whenUnknown: "Repeat the request: revoking a revoked key changes nothing.",
      },
      async handle({ params }) {
        const account = await ownerOf(store, params.id);
        const key = await store.revokeKey(account.tag, params.id);
        if (key === undefined) throw noSuchKey(params.id);
        return { status: 200, body: showKey(key, account.name) };
      },
    }),
  ];
}

function showRoute({ store, clock }: ConsoleParts): ConsoleRoute {
  return route({
    method: "GET",
    path: "/keys/:id",
    id: "showKey",
    summary: "Show a key, its limits and the use of its budgets",
    answers: { 200: ListedKeyShape },
    refusals: { 404: "`unknown_key`." },
    params: KeyPath,
    async handle({ params }) {
      const account = await ownerOf(store, params.id);
      const key = await keyNamed(store, account.tag, params.id);
      return { status: 200, body: showListedKey(key, account.name, clock.wallMs()) };
    },
  });
}

/** Gives a key a new value; everything else about it stays the same. */
function rotateRoute({ store, random }: ConsoleParts): ConsoleRoute {
  return route({
    method: "POST",
    path: "/keys/:id/rotate",
    id: "rotateKey",
    summary: "Give a key a new value, shown only in this answer; the old value still works for a while",
    description:
      `Without \`overlap_seconds\`, the old value works for a day. The key keeps its id, group, limits and spend. At most ` +
      `${KEY_VALUES_MAX} of its values work at the same time.`,
    answers: { 200: NewKeyShape },
    refusals: {
      404: "`unknown_key`.",
      409: "`key_revoked`: a revoked key cannot be changed. `too_many_values`: too many of its values still work.",
    },
    params: KeyPath,
    body: NewKeyValue,
    write: {
      what: "key.rotate",
      target: ({ params }) => params.id,
      facts: ({ body }) => ({ overlap_seconds: `${body.overlap_seconds ?? OVERLAP_S}` }),
      whenUnknown:
        "Rotate the key again: nobody can use a value that nobody has seen, and earlier values work until they end.",
    },
    async handle({ params, body }) {
      const account = await ownerOf(store, params.id);
      const fresh = newKey(account.tag, random);
      const rotation = { hash: fresh.hash, overlapMs: (body.overlap_seconds ?? OVERLAP_S) * 1_000 };
      const key = await twice(() => store.rotateKey(account.tag, params.id, rotation));
      if (key === undefined) throw noSuchKey(params.id);
      if (key === "too_many") throw tooManyValues(params.id);
      if (key.status === "revoked") throw keyRevoked(key);
      return { status: 200, body: { ...showKey(key, account.name), key: fresh.text } };
    },
  });
}

/** Changes of a key that is not revoked, effective from its next request. */
function changeRoutes({ store, catalog, clock }: ConsoleParts): readonly ConsoleRoute[] {
  const answers = { 200: KeyShape };
  const refusals = { 404: "`unknown_key`.", 409: "`key_revoked`: a revoked key cannot be changed." };
  const change = async (keyId: string, wanted: KeyChange) => {
    const account = await ownerOf(store, keyId);
    const key = await store.changeKey(account.tag, keyId, wanted);
    if (key === undefined) throw noSuchKey(keyId);
    if (key.status === "revoked") throw keyRevoked(key);
    return { status: 200, body: showKey(key, account.name) } as const;
  };
  return [
    route({
      method: "PUT",
      path: "/keys/:id/group",
      id: "setKeyGroup",
      summary: "Move a key to another group, effective from its next request",
      answers,
      refusals,
      params: KeyPath,
      body: NewGroup,
      write: {
        what: "key.set_group",
        target: ({ params }) => params.id,
        facts: ({ body }) => ({ group: body.group }),
        whenUnknown: "Repeat the request: setting the same group again changes nothing.",
      },
      async handle({ params, body }) {
        assertConfigured("group", body.group, catalog().groups.keys());
        return change(params.id, { group: body.group });
      },
    }),
    route({
      method: "PUT",
      path: "/keys/:id/name",
      id: "renameKey",
      summary: "Set a key's name, or remove it with null",
      answers,
      refusals,
      params: KeyPath,
      body: NewKeyName,
      write: {
        what: "key.rename",
        target: ({ params }) => params.id,
        facts: ({ body }) => ({ name: body.name ?? "" }),
        whenUnknown: "Repeat the request: setting the same name again changes nothing.",
      },
      handle: ({ params, body }) => change(params.id, { name: body.name ?? "" }),
    }),
    route({
      method: "PUT",
      path: "/keys/:id/expiry",
      id: "setKeyExpiry",
      summary: "Set when a key expires, or with null that it does not expire",
      answers,
      refusals,
      params: KeyPath,
      body: NewKeyEnd,
      write: {
        what: "key.set_expiry",
        target: ({ params }) => params.id,
        facts: ({ body }) => ({ expires_at: body.expires_at ?? "never" }),
        whenUnknown: "Repeat the request: setting the same instant again changes nothing.",
      },
      handle: async ({ params, body }) => change(params.id, { expiresAtMs: endOf(body.expires_at, clock) }),
    }),
    route({
      method: "POST",
      path: "/keys/:id/suspend",
      id: "suspendKey",
      summary: "Suspend a key, from its next request until it is resumed",
      answers,
      refusals,
      params: KeyPath,
      write: {
        what: "key.suspend",
        target: ({ params }) => params.id,
        whenUnknown: "Repeat the request: suspending a suspended key changes nothing.",
      },
      handle: ({ params }) => change(params.id, { status: "suspended" }),
    }),
    route({
      method: "POST",
      path: "/keys/:id/resume",
      id: "resumeKey",
      summary: "Resume a suspended key, effective from its next request",
      answers,
      refusals,
      params: KeyPath,
      write: {
        what: "key.resume",
        target: ({ params }) => params.id,
        whenUnknown: "Repeat the request: resuming a key that is not suspended changes nothing.",
      },
      handle: ({ params }) => change(params.id, { status: "normal" }),
    }),
  ];
}

/** @throws AdminRefusal 400 for an instant that does not exist or is over */
function endOf(typed: string | null, clock: Pick<Clock, "wallMs">): number | "never" {
  if (typed === null) return "never";
  const endMs = readInstant("expires_at", typed);
  if (endMs <= clock.wallMs()) {
    throw malformed("expires_at", "an instant in the future", "To stop a key at once, suspend or revoke it.");
  }
  return endMs;
}

function fits(key: Key, { search = "", group = key.group, status = key.status }: Static<typeof KeysQuery>): boolean {
  return key.group === group && key.status === status && key.name.toLowerCase().includes(search.toLowerCase());
}

/**
 * Keys after the one that the cursor names, oldest first.
 * @throws AdminRefusal 400 if no key of the account has this id
 */
function pageOf<K extends Key>(keys: readonly K[], cursor: string | undefined, limit: number): Page<K> {
  const from = cursor === undefined ? 0 : keys.findIndex(({ id }) => id === cursor) + 1;
  if (cursor !== undefined && from === 0)
    throw malformed("cursor", "the `next` of an earlier page", "Leave it out for the first page.");
  const items = keys.slice(from, from + limit);
  return { items, next: from + limit < keys.length ? items.at(-1)?.id : undefined };
}

function named(once: string | undefined): AuditFacts {
  return once === undefined ? {} : { idempotency_id: once };
}

function keyExists({ id, group }: Key): AdminRefusal {
  return new AdminRefusal(
    409,
    "key_exists",
    `The key \`${id}\` in the group \`${group}\` was already created under this idempotency_id; its text was shown only then.`,
    `If its text was lost, create another under another id, and revoke this one: ${COMMAND} key revoke ${id}`,
  );
}

function tooManyValues(id: string): AdminRefusal {
  return new AdminRefusal(
    409,
    "too_many_values",
    `The key \`${id}\` has ${KEY_VALUES_MAX} values that still work.`,
    "Wait until an old value has ended, or create another key and revoke this one.",
  );
}

/** Runs the write again if the outcome is unknown: the store accepts the same hash twice without harm. */
async function twice<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== "unavailable") throw error;
    return write();
  }
}
