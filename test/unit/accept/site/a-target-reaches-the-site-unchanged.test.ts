/**
 * docs/failure-model.md row H2: the site gets a request's target byte for byte, or the visitor gets 400; no target is
 * normalized on the way.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { type RawSite, startRawSite } from "../../../rig/raw-site.ts";
import { exchange } from "../../../rig/raw-socket.ts";
import { startEcho } from "../echo.ts";

const AS_THEY_CAME = [
  "/",
  "//",
  "/?",
  "/a?",
  "/a??b",
  "/a?b?c=d",
  "//other.test/x",
  "///other.test/x",
  "/x/../admin",
  "/x/./y",
  "/../../admin",
  "/x/%2e%2e/admin",
  "/x/%2E%2E%2Fadmin",
  "/x/%252e%252e/admin",
  "/x%5c..%5cadmin",
  "/x/..;/admin",
  "/x;a=b/c,d",
  "/a//b///c/",
  "/user:pass@other.test/",
  "/@other.test",
  "/:80",
  "/http://other.test/",
  "/%",
  "/%zz%",
  "/%00%0d%0a",
  "/%23fragment",
  "/%C3%A9",
  '/a"b<c>d|e[f]g{h}i^j`k',
  "/a?path=\\..\\admin",
  "/a?next=//other.test&to=../../x",
  "/a+b%20c",
  "/a'(b)*!$&,;=~._-",
  `/${"x".repeat(4_000)}?${"y".repeat(4_000)}`,
];

const REFUSED = [
  "/x\\..\\admin",
  "/\\other.test/x",
  "\\x",
  "/x#y",
  "/#",
  "/x?y#z",
  "/\xe9",
  "/x?\xff",
  "/a\tb",
  "/a\x01b",
  "/a\x7fb",
  "/a\0b",
  "http://other.test/x",
  "http://user@other.test/x",
  "//other.test\\@site.test/",
  "*",
  "?x",
  "x",
  "@other.test",
];

/** @returns the status, and the targets that the site received. */
async function send(site: RawSite, target: { port: number }, path: string, method = "GET") {
  const before = site.requests.length;
  const [answer] = await exchange(target, `${method} ${path} HTTP/1.1\r\nHost: site.test\r\n\r\n`);
  return { status: answer?.status, seen: site.requests.slice(before).map((request) => request.target) };
}

test("row H2: valid targets arrive as they were sent", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  for (const path of AS_THEY_CAME) {
    assert.deepEqual(await send(site, echo.target as { port: number }, path), { status: 200, seen: [path] }, path);
  }
});

test("row H2: invalid targets never reach the site", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  for (const path of REFUSED) {
    assert.deepEqual(await send(site, echo.target as { port: number }, path), { status: 400, seen: [] }, path);
  }
  assert.deepEqual(site.garbage, []);
  assert.deepEqual(echo.crashes, []);
});

test("row H2: any target arrives unchanged or not at all", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  const piece = fc.oneof(
    fc.constantFrom("/", "..", ".", "%2e", "%2F", "\\", "?", "#", "@", ":", ";", "//", "\t", "%", "\xc3", "%5c", "v1"),
    fc.string({ unit: fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 4 }),
  );
  const path = fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join("")}`);
  await fc.assert(
    fc.asyncProperty(path, async (sent) => {
      const { status, seen } = await send(site, echo.target as { port: number }, sent);
      if (status === 200) assert.deepEqual(seen, [sent]);
      else assert.deepEqual([[400, 404].includes(status ?? 0), seen], [true, []]);
    }),
    { numRuns: 300 },
  );
  assert.deepEqual(echo.crashes, []);
});

test("row H2: a target cannot escape the path of the site's URL", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => `${site.url}/app` });
  const target = echo.target as { port: number };
  for (const path of ["/", "/?", "/x?y=../z", "//x", "/...", "/x/./y"]) {
    assert.deepEqual(await send(site, target, path), { status: 200, seen: [`/app${path}`] }, path);
  }
  const out = ["/../admin", "/x/../../admin", "/%2e%2e/admin", "/.%2E/admin", "/%252e%252e/admin", "/..;/admin", "/.."];
  for (const path of out) assert.deepEqual(await send(site, target, path), { status: 400, seen: [] }, path);
});

test("row H2: a refusal says what is wrong with the target", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  const [answer] = await exchange(echo.target, "GET /x\\..\\admin HTTP/1.1\r\nHost: site.test\r\n\r\n");
  assert.match(answer?.body ?? "", /target has a character that must be percent-encoded/);
});
