/**
 * A Redis whose certificate is from an authority of its operator's, which asks for a certificate of ours, and sentinels that
 * speak TLS and want a password: `redis.tls` and `redis.sentinel` of the configuration.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { Secret } from "../../../src/values/secret.ts";
import type { StoreSettings } from "../../../src/values/settings.ts";
import { type Certificate, selfSigned } from "../../rig/certificates.ts";
import { freePorts } from "../../rig/ports.ts";
import { startRedis } from "../../rig/redis.ts";
import { PATIENT } from "./benches.ts";

/** Short, since those who must not come in are waited for. */
const BRIEF = { commandTimeoutMs: 500, stepTimeoutMs: 1_000 } as const;

/** The arguments of a server of this certificate. */
function tlsArgs(t: TestContext, { key, cert }: Certificate, port: number): string[] {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-tls-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const [keyFile, certFile] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  writeFileSync(keyFile, key);
  writeFileSync(certFile, cert);
  return [
    ...["--tls-port", `${port}`, "--tls-cert-file", certFile, "--tls-key-file", keyFile],
    ...["--tls-ca-cert-file", certFile],
  ];
}

async function isReached(t: TestContext, settings: StoreSettings, options: object = PATIENT): Promise<void> {
  const store = await openStore(settings, options);
  t.after(() => store.close());
  await store.check();
}

test("a server that wants to know who we are, at an address that its certificate does not have", async (t) => {
  const ours = selfSigned();
  const [port = 0] = await freePorts(1);
  const redis = await startRedis({ args: [...tlsArgs(t, ours, port), "--tls-auth-clients", "yes"] });
  t.after(() => redis.stop());
  const tls = { ca: ours.cert, identity: { cert: ours.cert, key: new Secret(ours.key) }, serverName: "localhost" };
  const url = new Secret(`rediss://127.0.0.1:${port}/0`);
  await isReached(t, { kind: "redis", url, tls });
  for (const missing of ["ca", "identity", "serverName"] as const) {
    const less = { kind: "redis", url, tls: { ...tls, [missing]: undefined } } as const;
    await assert.rejects(isReached(t, less, BRIEF), StoreError, `without ${missing}`);
  }
});

test("sentinels with TLS and a password, and the primary that they name", async (t) => {
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
