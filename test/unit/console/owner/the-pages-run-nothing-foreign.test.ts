/** What the pages of owners and operators tell a browser to refuse, and which files are served with each set. */
import assert from "node:assert/strict";
import test from "node:test";
import { createSealing } from "../../../../src/request/sealing.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { startConsole } from "../running-console.ts";
import { startOwners } from "../sign-in/owners.ts";

/** Compared as a whole, because a missing or widened directive would not be noticed otherwise. */
const POLICY = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self' data:",
  "connect-src": "'self'",
  "manifest-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
};
const OTHERS = {
  "cache-control": "no-cache",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}
type Get = (path: string) => Promise<Got>;

async function assertGuarded(get: Get, own: string, other: string): Promise<void> {
  for (const path of ["/console/", "/console/keys/none?x=1"]) {
    const { status, headers } = await get(path);
    assert.equal(status, 200, path);
    const directives = (headers["content-security-policy"] ?? "").split("; ").map((one) => one.split(/ (.*)/));
    assert.deepEqual(Object.fromEntries(directives), POLICY, path);
    for (const [name, value] of Object.entries(OTHERS)) assert.equal(headers[name], value, `${path} ${name}`);
  }
  const { text } = await get("/console/");
  assert.doesNotMatch(text, /<style|<script(?! type="module" src=)|\son[a-z]+=|style=/);
  const [, assets = ""] = /"(\/console\/assets\/[^/"]+\/)/.exec(text) ?? [];
  const file = await get(`${assets}${own}/main.ts`);
  assert.deepEqual([file.status, file.headers["x-content-type-options"]], [200, "nosniff"]);
  assert.equal((await get(`${assets}${other}/main.ts`)).status, 404, "the file belongs to the other set");
  assert.equal(
    (await get(`/console/assets/another-release/${own}/main.ts`)).status,
    404,
    "a file of another release is never found",
  );
}

test("the owners' pages load and run only what their gateway serves, and cannot be framed", async (t) => {
  const owners = await startOwners(t);
  const get: Get = async (target) => {
    const asked = { method: "GET", target, headers: { host: "gate.example" }, body: new Uint8Array(0) };
    const answer = await owners.console({ ...asked, clientAddress: "192.0.2.1", throughFront: false });
    return { status: answer.status, headers: answer.headers, text: Buffer.from(answer.body).toString() };
  };
  await assertGuarded(get, "owner", "operator");
});

test("the same holds for the operators' pages", async (t) => {
  const sealer = createSealing([new Secret("a-sealing-key-for-tests-0123456789")]);
  const console = await startConsole(t, { pages: { sealer, sessionMs: 3_600_000 } });
  const get: Get = async (path) => {
    const response = await fetch(console.url + path, { headers: { connection: "close" } });
    return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() };
  };
  await assertGuarded(get, "operator", "owner");
});
