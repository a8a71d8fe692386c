/**
 * docs/failure-model.md row H3: no key of the gateway reaches the site, wherever a client puts it; the site's own
 * credentials do.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type RawSite, startRawSite } from "../../../rig/raw-site.ts";
import { exchange, type Target } from "../../../rig/raw-socket.ts";
import { causeOf, KEY, OTHER_KEY, startEcho } from "../echo.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const base64url = (text: string) => Buffer.from(text).toString("base64url");
const percent = (text: string) => [...text].map((each) => `%${each.charCodeAt(0).toString(16)}`).join("");

/** Headers that carry a key, and what is left of each; undefined: the header is removed. */
const CARRIED: readonly (readonly [name: string, value: string, left: string | undefined])[] = [
  ["authorization", `Bearer ${KEY}`, undefined],
  ["authorization", `bearer ${KEY}`, undefined],
  ["authorization", `Bearer  ${KEY}`, undefined],
  ["authorization", KEY, undefined],
  ["authorization", `Token token="${KEY}"`, undefined],
  ["authorization", `Basic ${base64(`user:${KEY}`)}`, undefined],
  ["authorization", `Basic ${base64(`${KEY}:`)}`, undefined],
  ["authorization", `Basic ${base64url(`a-longer-user:${KEY}`)}`, undefined],
  ["authorization", `Bearer ${base64(KEY)}`, undefined],
  // Mistyped keys are removed, too.
  ["authorization", `Bearer ${KEY.slice(0, -1)}`, undefined],
  ["authorization", `Bearer\t${KEY.slice(0, -1)}`, undefined],
  ["authorization", KEY.slice(0, -1), undefined],
  ["api-key", KEY.slice(0, -1), undefined],
  ["x-goog-api-key", KEY.slice(1).replace("k-", "sk-").slice(0, -1), undefined],
  ["x-api-key", `"${KEY.slice(0, -1)}"`, undefined],
  ["sec-websocket-protocol", `realtime, openai-insecure-api-key.${KEY.slice(0, -1)}`, "realtime"],
  ["x-api-key", KEY, undefined],
  ["x-api-key", KEY.slice(0, -1), undefined],
  ["x_api_key", KEY, undefined],
  ["api-key", KEY, undefined],
  ["x-goog-api-key", KEY, undefined],
  ["x-auth-token", `v1.${KEY}.x`, undefined],
  ["x-anything", `glued${KEY}glued`, undefined],
  ["x-anything", percent(KEY), undefined],
  ["x-anything", percent(percent(KEY)), undefined],
  ["x-anything", percent(percent(percent(base64(KEY)))), undefined],
  ["x-anything", JSON.stringify({ key: KEY }), undefined],
  ["referer", `https://site.test/x?key=${KEY}`, undefined],
  ["user-agent", `tool/1.0 (${KEY})`, undefined],
  ["proxy-authorization", `Bearer ${KEY}`, undefined],
  [KEY, "x", undefined],
  ["cookie", `key=${KEY}`, undefined],
  ["cookie", `a=1; key=${KEY}; b=2`, "a=1; b=2"],
  ["cookie", `key=${percent(KEY)}; session=s`, "session=s"],
  ["cookie", `a=1; auth=${base64(`x:${KEY}`)}`, "a=1"],
  ["cookie", "__Host-tollgate-owner=gw1.sealed", undefined],
  ["cookie", "a=1; __Host-tollgate-owner=gw1.sealed; __host-tollgate-oidc=gw1.x; b=2", "a=1; b=2"],
  ["cookie", "__Host-tollgate-operator=gw1.sealed;session=s", "session=s"],
  [
    "sec-websocket-protocol",
    `realtime, openai-insecure-api-key.${KEY}, openai-beta.realtime-v1`,
    "realtime, openai-beta.realtime-v1",
  ],
  ["sec-websocket-protocol", `openai-insecure-api-key.${KEY}`, undefined],
  ["sec-websocket-protocol", `base64url.bearer.authorization.k8s.io.${base64url(KEY)}, v4.channel`, "v4.channel"],
];

const DIGEST = "0123456789abcdef".repeat(4);
/** Credentials and headers that belong to the site. */
const FOREIGN: readonly (readonly [name: string, value: string])[] = [
  ["authorization", "Bearer the-sites-own"],
  ["authorization", `Bearer task-${DIGEST}`],
  ["authorization", `Bearer eyJhbGciOiJIUzI1NiJ9.${base64url(DIGEST)}.${base64url(DIGEST)}`],
  ["authorization", `Basic ${base64("admin:secret")}`],
  ["authorization", `Basic ${base64(`admin:${DIGEST}`)}`],
  ["authorization", 'Digest username="a", nonce="b"'],
  ["x-api-key", "the-sites-own"],
  ["api-key", DIGEST],
  ["cookie", `session=${DIGEST}; task-${DIGEST}=1; theme=dark`],
  ["cookie", 'a="b; c"; d'],
  ["sec-websocket-protocol", "graphql-ws, mqtt"],
  ["x-csrf-token", base64(DIGEST)],
  ["referer", "https://site.test/desk-of-somebody?q=%20a"],
  ["x-risk", `risk-${DIGEST}`],
  ["session_id", "s-1"],
];

/** Every decoding of the bytes that the site received, made without the code under test. */
function readings(bytes: string): string {
  const decoded = [bytes];
  for (let round = 0; round < 3; round += 1) {
    const last = decoded.join("\n");
    decoded.push(last.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => Buffer.from(hex, "hex").toString("latin1")));
    for (const [token] of last.matchAll(/[\w+/-]{16,}/g)) decoded.push(Buffer.from(token, "base64").toString("latin1"));
  }
  return decoded.join("\n").toLowerCase();
}

function assertNoKey(site: RawSite, what: string): void {
  const all = readings(site.connections.join("\n"));
  // The secret part alone would be enough.
  for (const key of [KEY, OTHER_KEY]) assert.ok(!all.includes(key.slice(13, 45).toLowerCase()), what);
}

const get = (target: Target, path: string, ...headers: string[]) =>
  exchange(target, [`GET ${path} HTTP/1.1`, "Host: site.test", ...headers, "", ""].join("\r\n"));

test("row H3: keys are removed from headers", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  for (const [name, value, left] of CARRIED) {
    const [answer] = await get(echo.target, "/page", `${name}: ${value}`);
    assert.equal(answer?.status, 200, `${name}: ${value}`);
    const got = site.requests.at(-1)?.headers.find(([each]) => each === name.toLowerCase())?.[1];
    assert.equal(got, left, `${name}: ${value}`);
    assertNoKey(site, `${name}: ${value}`);
  }
});

test("row H3: keys are removed from the headers of a WebSocket upgrade", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  for (const [name, value, left] of CARRIED) {
    const [answer] = await get(echo.target, "/live", "Connection: Upgrade", "Upgrade: websocket", `${name}: ${value}`);
    assert.equal(answer?.status, 200, "the site of this test refuses upgrades");
    const got = site.requests.at(-1)?.headers.find(([each]) => each === name.toLowerCase())?.[1];
    assert.equal(got, left, `${name}: ${value}`);
    assertNoKey(site, `${name}: ${value}`);
  }
});

test("row H3: the site's own credentials pass unchanged", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  for (const [name, value] of FOREIGN) {
    await get(echo.target, "/page", `${name}: ${value}`);
    assert.deepEqual(site.requests.at(-1)?.headers.find(([each]) => each === name)?.[1], value, name);
  }
});

test("row H3: removing a key keeps the site's own credentials beside it", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  await get(
    echo.target,
    "/page",
    `X-Api-Key: ${KEY}`,
    `Authorization: Bearer own`,
    `Cookie: a=1`,
    `Cookie: k=${OTHER_KEY}`,
  );
  const got = site.requests.at(-1)?.headers.filter(([name]) => ["authorization", "cookie", "x-api-key"].includes(name));
  assert.deepEqual(got, [
    ["authorization", "Bearer own"],
    ["cookie", "a=1"],
  ]);
});

test("row H3: a target or a host with a key is 400, and the answer says where keys belong", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  const targets = [
    `/page?key=${KEY}`,
    `/page?a=1&api_key=${KEY}&b=2`,
    `/page?key=${percent(KEY)}`,
    `/page?key=${percent(percent(KEY))}`,
    `/page?auth=${base64url(`user:${KEY}`)}`,
    `/page?auth=${percent(base64(`user:${KEY}`))}`,
    `/${KEY}`,
    `/bot${KEY}/send`,
  ];
  for (const path of targets) {
    const [answer] = await get(echo.target, path);
    assert.equal(answer?.status, 400, path);
    assert.equal(causeOf(answer.body), "key_in_address");
    assert.ok(!answer.body.includes(KEY));
  }
  const [byHost] = await exchange(echo.target, `GET / HTTP/1.1\r\nHost: ${KEY}.site.test\r\n\r\n`);
  assert.equal(byHost?.status, 400);
  assert.deepEqual(site.requests, []);
  const [own] = await get(echo.target, `/page?session=task-${DIGEST}&token=${base64(DIGEST)}`);
  assert.equal(own?.status, 200);
});
