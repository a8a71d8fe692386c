/**
 * A client that disconnects before the headers of its answer, and a request that is refused: the line of the front and
 * that of the gateway have the front's id in common, and a client cannot choose it.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout } from "node:timers/promises";
import { type Envoy, startEnvoy } from "../../../rig/envoy.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { type Nginx, startNginx } from "../../../rig/nginx.ts";
import { ask } from "../../protocol/whole/asking.ts";
import { behindOf, type HandUpstream, startHandUpstream } from "./fronts.ts";

type Line = Readonly<Record<string, unknown>>;

/** Of the form that fronts use, so that only its origin tells it from the front's. */
const OF_THE_CLIENT = "0123456789abcdef0123456789abcdef";

const POLL_MS = 10;

const HEADERS = { "x-request-id": OF_THE_CLIENT };

/** Sends a request that the client leaves before its answer, one with a wrong key and one to a wrong path. */
async function traffic(url: string, here: GatewayHere, upstream: HandUpstream): Promise<Line[]> {
  const { key } = await here.account();
  const leaving = new AbortController();
  const left = ask({ url }, "chat", key, {}, { headers: HEADERS, signal: leaving.signal });
  const { closed } = await upstream.next();
  leaving.abort();
  await assert.rejects(left, { name: "AbortError" });
  await closed;
  const lines = [await here.logged(({ cause }) => cause === "client_gone")];
  for (const refused of [{ key: "sk-nobody" }, { key, path: "/v1/nothing" }, { path: "/v1/chat//completions" }]) {
    const reply = await ask({ url }, "chat", refused.key, {}, { headers: HEADERS, ...refused });
    await reply.text();
    lines.push(await here.requestEnd(reply.headers.get("x-request-id") ?? ""));
  }
  return lines;
}

/** The requests are sent one after another, so both have their lines in the same order. */
function assertJoined(ours: readonly Line[], fronts: readonly Line[], form: RegExp): void {
  assert.deepEqual(
    ours.map(({ status }) => status),
    [499, 401, 404, 404],
  );
  assert.deepEqual(
    ours.map(({ front_request }) => front_request),
    fronts.map(({ front_request }) => front_request),
  );
  for (const { front_request } of ours) assert.match(String(front_request), form);
  assert.ok(!JSON.stringify([ours, fronts]).includes(OF_THE_CLIENT), "the client's own id is in no line");
}

/** A gateway whose model server does not answer. */
async function startSilent(t: { after(hook: () => Promise<void>): void }) {
  const upstream = await startHandUpstream();
  t.after(() => upstream.close());
  const config = (places: Parameters<typeof testConfig>[0]) =>
    testConfig({ ...places, upstreamUrl: upstream.url }, { trust_proxy: ["127.0.0.1/32"] });
  const here = await startGatewayHere({ config });
  t.after(() => here.close());
  return { upstream, here };
}

test("nginx", async (t) => {
  const { upstream, here } = await startSilent(t);
  const front: Nginx = await startNginx({ servers: [`127.0.0.1:${behindOf(here).listen}`] });
  let fronts: Line[];
  let ours: Line[];
  try {
    ours = await traffic(front.url, here, upstream);
    // nginx writes its line after the answer, and says so to nobody.
    while (front.accessLog().length < ours.length) await setTimeout(POLL_MS);
    fronts = front.accessLog();
  } finally {
    await front.stop();
  }
  assert.equal(fronts[0]?.status, 499);
  assert.equal(fronts[0]?.request, "", "nginx has not seen the gateway's id");
  assertJoined(ours, fronts, /^[0-9a-f]{32}$/);
});

test("Envoy", async (t) => {
  const { upstream, here } = await startSilent(t);
  const front: Envoy = await startEnvoy({ endpoints: [behindOf(here)] });
  let ours: Line[];
  try {
    ours = await traffic(front.url, here, upstream);
  } finally {
    // Envoy writes its access log when it ends.
    await front.stop();
  }
  const printed = front.output().split("\n");
  const fronts = printed.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Line);
  assert.equal(fronts[0]?.flags, "DC");
  assert.equal(fronts[0]?.request, null, "Envoy has not seen the gateway's id");
  assertJoined(ours, fronts, /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});
