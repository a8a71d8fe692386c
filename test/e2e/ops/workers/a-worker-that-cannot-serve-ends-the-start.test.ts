/** A worker that cannot serve ends the whole start with its reason, and no process is left. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import test from "node:test";
import { workersScene } from "./rig.ts";

test("an address in use by another process ends the start with this reason", async (t) => {
  const scene = await workersScene(t);
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  try {
    const started = scene.start(2, { listen: `127.0.0.1:${port}` });
    await assert.rejects(started, /port \d+ on 127\.0\.0\.1 is in use by another program \(setting listen\)/);
  } finally {
    other.close();
  }
});
