/**
 * A response on a connection that Node's HTTP server has let go, as it does with those that ask for another protocol:
 * until the protocol changes, an answer is HTTP like any other.
 */
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export class BareResponse extends ServerResponse {
  readonly #drained = () => void this.emit("drain");
  readonly #ended: () => void;

  /**
   * After an answer the connection is closed, and what still arrives is drained for a while, so that no reset destroys
   * the answer (RFC 9112 section 9.6).
   */
  constructor(req: IncomingMessage, socket: Socket, lingerMs: number) {
    super(req);
    this.#ended = () => socket.destroy();
    // These replace the listeners of Node's own that have gone with its parser.
    socket.on("error", () => socket.destroy());
    socket.on("drain", this.#drained);
    socket.on("end", this.#ended);
    this.assignSocket(socket);
    this.on("finish", () => {
      this.detachSocket(socket);
      socket.end();
      const timer = setTimeout(() => socket.destroy(), lingerMs);
      socket.on("end", this.#ended);
      socket.on("close", () => clearTimeout(timer));
      socket.resume();
    });
  }

  /** Gives the connection away: nothing of this response listens to it any more. */
  override detachSocket(socket: Socket): void {
    socket.off("drain", this.#drained);
    socket.off("end", this.#ended);
    super.detachSocket(socket);
  }
}
