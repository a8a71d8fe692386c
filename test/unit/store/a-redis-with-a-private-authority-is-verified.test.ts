/**
 * A Redis with a certificate of the operator's own authority that demands a client certificate, and sentinels with TLS and a
 * password: `redis.tls` and `redis.sentinel` of the configuration.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { Secret } from "../../../src/values/secret.ts";
import type { StoreSettings, TlsSettings } from "../../../src/values/settings.ts";
import { type Certificate, redisTlsFiles, selfSigned } from "../../rig/certificates.ts";
import { freePorts } from "../../rig/ports.ts";
import { serveAllSlots, startRedis } from "../../rig/redis.ts";
import { PATIENT } from "./benches.ts";

/** Short, since the test waits for connections that must be refused. */
const BRIEF = { commandTimeoutMs: 500, stepTimeoutMs: 1_000 } as const;

/** The settings of a server with this certificate, by name and file in turn. */
function tlsFiles(t: TestContext, certificate: Certificate): [name: string, file: string][] {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-tls-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return Object.entries(redisTlsFiles(dir, certificate));
}

/** The arguments of a server with this certificate. */
function tlsArgs(t: TestContext, certificate: Certificate, port: number): string[] {
  return ["--tls-port", `${port}`, ...tlsFiles(t, certificate).flatMap(([name, file]) => [`--${name}`, file])];
}

async function isReached(t: TestContext, settings: StoreSettings, options: object = PATIENT): Promise<void> {
  const store = await openStore(settings, options);
  t.after(() => store.close());
  await store.check();
}

test("a server that demands a client certificate is reached at an address that its own certificate does not contain", async (t) => {
  const ours = selfSigned();
  const [port = 0] = await freePorts(1);
  const redis = await startRedis({ args: [...tlsArgs(t, ours, port), "--tls-auth-clients", "yes"] });
  t.after(() => redis.stop());
  const tls = bothBy(ours);
  const url = new Secret(`rediss://127.0.0.1:${port}/0`);
  await isReached(t, { kind: "redis", url, tls });
  for (const missing of ["ca", "identity", "serverName"] as const) {
    const less = { kind: "redis", url, tls: { ...tls, [missing]: undefined } } as const;
    await assert.rejects(isReached(t, less, BRIEF), StoreError, `without ${missing}`);
  }
});

/** Everything that verifies a server with this certificate and identifies the gateway to it. */
const bothBy = ({ key, cert }: Certificate): TlsSettings => ({
  ca: cert,
  identity: { cert, key: new Secret(key) },
  serverName: "localhost",
});

for (const kind of ["redis", "redis-cluster"] as const) {
  test(`${kind}: certificates renewed on both sides take effect with the next connection`, async (t) => {
    const [first, second] = [selfSigned(), selfSigned()];
    const [port = 0] = await freePorts(1);
    const cluster =
      kind === "redis"
        ? []
        : ["--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-announce-ip", "127.0.0.1"];
    const redis = await startRedis({ args: [...tlsArgs(t, first, port), "--tls-auth-clients", "yes", ...cluster] });
    t.after(() => redis.stop());
    if (kind === "redis-cluster") await serveAllSlots(redis);
    let tls = bothBy(first);
    const at = { tls, nodes: [{ host: "127.0.0.1", port }], username: undefined, password: undefined };
    const settings: StoreSettings =
      kind === "redis" ? { kind, url: new Secret(`rediss://127.0.0.1:${port}/0`), tls } : { kind, ...at };
    const store = await openStore(settings, { ...PATIENT, tlsNow: () => tls });
    t.after(() => store.close());
    await store.check();
    await redis.command("CONFIG", "SET", ...tlsFiles(t, second).flat());
    tls = bothBy(second);
    await redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await store.check();
    await assert.rejects(isReached(t, settings, BRIEF), StoreError, "with the first certificates");
  });
}

test("sentinels with TLS and a password are reached, and so is the primary that they name", async (t) => {
  const ours = selfSigned();
  const [port = 0, sentinelPort = 0] = await freePorts(2);
  const open = ["--tls-auth-clients", "no"];
  const redis = await startRedis({ args: [...tlsArgs(t, ours, port), ...open] });
  t.after(() => redis.stop());
  const sentinel = await startRedis({
    sentinelConfig: `sentinel monitor tollgate 127.0.0.1 ${port} 1\n`,
    args: [...tlsArgs(t, ours, sentinelPort), ...open, "--tls-replication", "yes"],
  });
  t.after(() => sentinel.stop());
  await sentinel.command("ACL", "SETUSER", "watcher", "on", ">hush", "+@all", "allchannels");
  await sentinel.command("ACL", "SETUSER", "default", "off");
  const tls = { ca: ours.cert, identity: undefined, serverName: "localhost" };
  const settings: Extract<StoreSettings, { kind: "redis-sentinel" }> = {
    kind: "redis-sentinel",
    sentinels: [{ host: "127.0.0.1", port: sentinelPort }],
    name: "tollgate",
    tls,
    ...{ username: undefined, password: undefined },
    ...{ sentinelUsername: "watcher", sentinelPassword: new Secret("hush") },
  };
  await isReached(t, settings);
  await assert.rejects(isReached(t, { ...settings, sentinelPassword: new Secret("other") }, BRIEF), StoreError);
  await assert.rejects(isReached(t, { ...settings, tls: { ...tls, ca: undefined } }, BRIEF), StoreError);
});
