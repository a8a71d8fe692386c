/**
 * An upgraded connection: copies bytes both ways until either side ends or both are idle. Memory is bounded: while one
 * side accepts nothing, nothing is read from the other.
 */
import type { Socket } from "node:net";

interface TunnelLimits {
  /** Idle timeout of both sides. */
  readonly idleMs: number;
  /** After one side has ended: how long the other may still receive what was sent. */
  readonly lingerMs: number;
}

export interface TunnelEnd {
  readonly socket: Socket;
  /** Bytes that it has already sent. */
  readonly first: Uint8Array;
}

/** Connects the two; resolves when both are closed. */
export async function tunnel(one: TunnelEnd, other: TunnelEnd, limits: TunnelLimits): Promise<void> {
  const sockets = [one.socket, other.socket];
  const closed = sockets.map((socket) => closeOf(socket));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  let lingering: NodeJS.Timeout | undefined;
  const ending = () => {
    for (const socket of sockets) socket.end();
    lingering ??= setTimeout(cut, limits.lingerMs);
  };
  for (const socket of sockets) {
    socket.on("error", cut);
    socket.on("end", ending);
    socket.on("close", ending);
    socket.setTimeout(limits.idleMs, cut);
  }
  connect(one, other.socket);
  connect(other, one.socket);
  // A side that was destroyed before this emits nothing except `close`.
  if (sockets.some((socket) => socket.destroyed)) cut();
  await Promise.all(closed);
  clearTimeout(lingering);
}

function connect(from: TunnelEnd, to: Socket): void {
  if (from.first.length > 0) to.write(from.first);
  from.socket.pipe(to);
}

function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}
