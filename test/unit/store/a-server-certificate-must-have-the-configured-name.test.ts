/** `rediss://` and `rediss-cluster://`: a server's certificate has to be valid for the configured name, not for its address. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { StoreError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { Secret } from "../../../src/values/secret.ts";
import { selfSigned } from "../../rig/certificates.ts";
import { freePorts } from "../../rig/ports.ts";
import { serveAllSlots, startRedis } from "../../rig/redis.ts";
import { PATIENT } from "./benches.ts";

const CLUSTER = [
  ...["--cluster-enabled", "yes", "--tls-cluster", "yes"],
  ...["--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname"],
];

const ANY_AUTHORITY = { ca: undefined, identity: undefined, serverName: undefined };

/** A server with a certificate for `localhost`, which this process trusts. @returns its port for TLS. */
async function startTls(t: TestContext, args: readonly string[]) {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-tls-"));
  const trusted = getCACertificates("default");
  const { key, cert } = selfSigned();
  const [keyFile, certFile] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  writeFileSync(keyFile, key);
  writeFileSync(certFile, cert);
  setDefaultCACertificates([...trusted, cert]);
  const [port = 0] = await freePorts(1);
  const tls = ["--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", certFile];
  const redis = await startRedis({ args: ["--tls-port", `${port}`, "--tls-auth-clients", "no", ...tls, ...args] });
  t.after(async () => {
    setDefaultCACertificates(trusted);
    await redis.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  return { redis, port };
}

test("a single server is verified by the name in its certificate", async (t) => {
  const { port } = await startTls(t, []);
  const store = await openStore({ kind: "redis", url: new Secret(`rediss://localhost:${port}/0`) }, PATIENT);
  t.after(() => store.close());
  await store.check();
});

test("a cluster is verified by the configured name, and a server with a certificate for another name is refused", async (t) => {
  const { redis, port } = await startTls(t, CLUSTER);
  await serveAllSlots(redis);
  const open = (host: string) =>
    openStore(
      { kind: "redis-cluster", nodes: [{ host, port }], tls: ANY_AUTHORITY, username: undefined, password: undefined },
      PATIENT,
    );
  const store = await open("localhost");
  t.after(() => store.close());
  await store.check();
  const url = new Secret(`rediss://127.0.0.1:${port}/0`);
  const other = await openStore({ kind: "redis", url }, { commandTimeoutMs: 500, stepTimeoutMs: 1_000 });
  t.after(() => other.close());
  await assert.rejects(other.check(), StoreError);
});
