/**
 * ARCHITECTURE.md promise 8 through a front: an upstream that breaks off becomes an error event of the protocol; a
 * gateway that dies becomes an aborted answer, never one that looks complete.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { spawnGateway, startGatewayHere } from "../../../rig/gateway.ts";
import { startNginx } from "../../../rig/nginx.ts";
import { keyOf } from "./admin.ts";
import {
  behindFront,
  behindOf,
  chatFrame,
  chatStream,
  chatStreamOverHttp2,
  FRONTS,
  type Front,
  type ReadStream,
  startHandUpstream,
} from "./fronts.ts";

const WAYS: readonly [string, (front: Front, key: string) => Promise<ReadStream>][] = [
  ["HTTP/1.1", (front, key) => chatStream(front.url, key)],
  ["HTTP/2", (front, key) => chatStreamOverHttp2(front, key)],
];

for (const kind of FRONTS) {
  test(`${kind.name}: an upstream that breaks off after an event becomes an error event, and the answer ends`, async () => {
    const upstream = await startHandUpstream();
    const config = behindFront();
    const here = await startGatewayHere({ config: (places) => config({ ...places, upstreamUrl: upstream.url }) });
    const front = await kind.start([behindOf(here)]);
    const { key } = await here.account();
    try {
      for (const [way, open] of WAYS) {
        const opening = open(front, key);
        const request = await upstream.next();
        request.send(chatFrame("first."));
        const stream = await opening;
        await stream.until("first.");
        request.res.socket?.resetAndDestroy();
        const { text, cut } = await stream.end();
        assert.ok(!cut, way);
        assert.match(text, /"error":\{/, way);
        assert.ok(!text.includes("[DONE]"), way);
      }
    } finally {
      await front.stop();
      await here.close();
      await upstream.close();
    }
  });

  for (const [way, open] of WAYS) {
    test(`${kind.name}, ${way}: a gateway killed in mid-stream becomes an aborted answer`, async () => {
      assert.equal(await cutByKill((behind) => kind.start([behind]), open), true);
    });
  }
}

test("behind nginx with HTTP/1.0 the answer would look complete: the test above can fail", async () => {
  const edit = (text: string) => text.replace("proxy_http_version 1.1;", "proxy_http_version 1.0;");
  const cut = await cutByKill(
    ({ listen }) => startNginx({ servers: [`127.0.0.1:${listen}`], edit }),
    (front, key) => chatStream(front.url, key),
  );
  assert.equal(cut, false);
});

/** Kills a gateway under a stream. @returns whether the client could notice it. */
async function cutByKill(
  start: (behind: ReturnType<typeof behindOf>) => Promise<Front>,
  open: (front: Front, key: string) => Promise<ReadStream>,
): Promise<boolean> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-fronts-"));
  const upstream = await startHandUpstream();
  const gateway = await spawnGateway(behindFront()({ upstreamUrl: upstream.url, dir }));
  const front = await start(behindOf(gateway));
  try {
    const key = await keyOf(gateway, "reader");
    const opening = open(front, key);
    const request = await upstream.next();
    request.send(chatFrame("first."));
    const stream = await opening;
    await stream.until("first.");
    await gateway.stop("SIGKILL");
    return (await stream.end()).cut;
  } finally {
    await front.stop();
    await gateway.stop("SIGKILL");
    await upstream.close();
    rmSync(dir, { recursive: true, force: true });
  }
}
