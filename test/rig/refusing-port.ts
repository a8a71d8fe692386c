/** A port without a listener, reserved as long as it is needed. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import type { TestContext } from "node:test";

/**
 * A port of 127.0.0.1 that refuses connections until the test ends.
 *
 * It is the local end of an open connection: a port that was only closed could be taken by another test a moment later.
 */
export async function refusingPort(t: TestContext): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[peer]] = await Promise.all([once(server, "connection"), once(socket, "connect")]);
  t.after(() => {
    socket.destroy();
    peer.destroy();
    server.close();
  });
  return socket.localPort as number;
}
