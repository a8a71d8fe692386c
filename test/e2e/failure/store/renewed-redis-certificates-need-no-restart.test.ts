/**
 * `redis.tls`: files that are replaced while a gateway runs are used from the next connection on; a restart would cut
 * streams.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { redisTlsFiles, selfSigned } from "../../../rig/certificates.ts";
import { testConfig } from "../../../rig/config.ts";
import { spawnGateway } from "../../../rig/gateway.ts";
import { freePorts } from "../../../rig/ports.ts";
import { startRedis } from "../../../rig/redis.ts";

test("a gateway reconnects to a Redis after the certificates on both sides were renewed", async (t) => {
  const [dir, servers] = [
    mkdtempSync(join(tmpdir(), "tollgate-ours-")),
    mkdtempSync(join(tmpdir(), "tollgate-theirs-")),
  ];
  const [first, second] = [selfSigned(), selfSigned()];
  const [port = 0] = await freePorts(1);
  const args = Object.entries(redisTlsFiles(servers, first)).flatMap(([name, file]) => [`--${name}`, file]);
  const redis = await startRedis({ args: ["--tls-port", `${port}`, "--tls-auth-clients", "yes", ...args] });
  const ours = redisTlsFiles(dir, first);
  const gateway = await spawnGateway(
    testConfig(
      { upstreamUrl: "http://127.0.0.1:9", dir, store: `rediss://127.0.0.1:${port}/0` },
      {
        redis: {
          tls: {
            ca_file: ours["tls-ca-cert-file"],
            cert_file: ours["tls-cert-file"],
            key_file: ours["tls-key-file"],
            server_name: "localhost",
          },
        },
      },
    ),
  );
  t.after(async () => {
    await gateway.stop();
    await redis.stop();
    for (const made of [dir, servers]) rmSync(made, { recursive: true, force: true });
  });
  const ready = async () => (await fetch(`${gateway.adminUrl}/readyz`)).status;
  assert.equal(await ready(), 200);
  redisTlsFiles(dir, second);
  const reloaded = JSON.parse(await gateway.line("configuration reloaded"));
  assert.deepEqual(reloaded.restart, [], "the change takes effect without a restart");
  assert.equal(await ready(), 200, "the open connection stays open");
  await redis.command("CONFIG", "SET", ...Object.entries(redisTlsFiles(servers, second)).flat());
  await redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  // The other process makes the new connection at its own time.
  const answer = () =>
    fetch(`${gateway.adminUrl}/admin/v1/accounts`, { headers: { authorization: "Bearer test-admin-token" } });
  while ((await answer()).status !== 200);
});
