/** docs/failure-model.md row H7: visitors cannot use up the threads that resolve host names. */
import assert from "node:assert/strict";
import { PerformanceObserver } from "node:perf_hooks";
import test from "node:test";
import { startRawSite } from "../../../rig/raw-site.ts";
import { exchange } from "../../../rig/raw-socket.ts";
import { startEcho } from "../echo.ts";

test("row H7: all visits to a site share one lookup", async (t) => {
  const site = await startRawSite(t);
  // The entries that Node records for lookups, each after its answer.
  const noted: PerformanceEntry[] = [];
  const looks = new PerformanceObserver((list) => void noted.push(...list.getEntries()));
  looks.observe({ entryTypes: ["dns"] });
  t.after(() => looks.disconnect());
  const asked = () => [...noted, ...looks.takeRecords()].length;
  const { target } = await startEcho(t, { siteUrl: () => `http://localhost:${site.port}` });
  const visit = async () => (await exchange(target, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"))[0]?.status;
  assert.deepEqual([await visit(), await visit(), await visit()], [200, 200, 200]);
  assert.equal(asked(), 1);
});

test("row H4: a site may have a host name, and a name that does not resolve is 502", async (t) => {
  const site = await startRawSite(t);
  const named = await startEcho(t, { siteUrl: () => `http://localhost:${site.port}` });
  for (const path of ["/a", "/b"]) {
    const [answer] = await exchange(named.target, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    assert.equal(answer?.body, `GET ${path} for 127.0.0.1\n`);
  }
  const unknown = await startEcho(t, { siteUrl: () => "http://no-such-name.invalid" });
  assert.equal((await exchange(unknown.target, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"))[0]?.status, 502);
});
