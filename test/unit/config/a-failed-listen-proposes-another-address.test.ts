/** The messages of a listener that cannot listen: real failures, each with an alternative address. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type ListenOptions } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { ListenFailure, listenFailure } from "../../../src/config/listen-failure.ts";
import type { Address } from "../../../src/values/settings.ts";

async function listening(t: TestContext, options: ListenOptions): Promise<number> {
  const server = createServer().listen(options);
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** The failure at an address that cannot be listened on. */
async function failureAt(address: Address, cause?: unknown, other?: Address): Promise<ListenFailure> {
  const options = address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port };
  const found = cause ?? (await once(createServer().listen(options), "listening").catch((error: unknown) => error));
  const failure = await listenFailure("listen", address, found, other);
  assert.ok(failure instanceof ListenFailure, String(failure));
  return failure;
}

const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
const isHere = (host: string) => addresses.some(({ address }) => address === host);

for (const host of ["127.0.0.1", "::1"]) {
  const skip = !isHere(host) && `this machine has no ${host}`;
  test(`for ${host} a free port is proposed`, { skip }, async (t) => {
    const port = await listening(t, { host, port: 0 });
    // If this fails, that port is taken already.
    await listening(t, { host, port: port + 1 }).catch(() => {});
    const { instead = "" } = await failureAt({ kind: "tcp", host, port });
    const shown = host === "::1" ? "[::1]" : host;
    assert.ok(instead.startsWith(`${shown}:`), instead);
    assert.ok(Number(instead.slice(shown.length + 1)) > port + 1, instead);
  });
}

test("the port that is configured for the gateway's other listener is not proposed", async (t) => {
  const host = "127.0.0.1";
  const port = await listening(t, { host, port: 0 });
  const address: Address = { kind: "tcp", host, port };
  const { instead: free = "" } = await failureAt(address);
  const other: Address = { kind: "tcp", host, port: Number(free.slice(host.length + 1)) };
  const { instead = "" } = await failureAt(address, undefined, other);
  assert.ok(Number(instead.slice(host.length + 1)) > other.port, `${instead} beside ${free}`);
});

test("the message for a socket in use and for a socket path that is too long", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-listen-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, "s");
  const server = createServer().listen(path);
  await once(server, "listening");
  t.after(() => server.close());
  assert.equal(
    (await failureAt({ kind: "unix", path })).message,
    `another program listens on the socket ${path}, or a file of that name is in the way (setting listen); ` +
      `stop that program, or use another path, such as listen: unix:${path}.2`,
  );
  const long = join(dir, "s".repeat(200));
  assert.equal(
    (await failureAt({ kind: "unix", path: long })).message,
    `the path of the socket is too long: ${long} (setting listen); use a shorter one, of at most 107 bytes`,
  );
});

test("the message for a name without an address", async () => {
  for (const code of ["ENOTFOUND", "EAI_AGAIN"]) {
    const { message } = await failureAt({ kind: "tcp", host: "gate", port: 8787 }, { code });
    assert.equal(
      message,
      "the name gate has no address (setting listen); write an address of this machine, such as listen: 127.0.0.1:8787",
    );
  }
});
