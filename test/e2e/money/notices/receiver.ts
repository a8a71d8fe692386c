/** A receiver of notices on 127.0.0.1. It verifies each with the official library of Standard Webhooks and logs it. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

export interface Arrived {
  readonly id: string;
  readonly type: string;
  /** The account's name; empty if the notice is about no account. */
  readonly account: string;
  readonly reference: string;
  readonly body: string;
  /** The status that the receiver answered. */
  readonly status: number;
}

interface NoticeBody {
  readonly type: string;
  readonly timestamp: string;
  readonly data: { readonly account?: { readonly id: string; readonly name: string }; readonly reference?: string };
}

export interface Receiver {
  readonly url: string;
  /** All messages, in the order of arrival. */
  readonly log: readonly Arrived[];
  /** The status and the headers with which the next message is answered. */
  answer: (arrived: Omit<Arrived, "status">) => { status: number; headers?: Readonly<Record<string, string>> };
  /** Resolves when `done` returns true; it is called now and after each message. */
  until(done: () => boolean): Promise<void>;
  close(): Promise<void>;
}

/** @param anyTime whether signatures of any time are accepted, for senders with their own clock. */
export async function startReceiver(secret: string, { anyTime = false } = {}): Promise<Receiver> {
  const judge = new Webhook(secret);
  const log: Arrived[] = [];
  const looks = new Set<() => void>();
  const server: Server = createServer((request, response) => {
    void textOf(request).then((body) => {
      const arrived = read(judge, request, body, anyTime);
      const { status, headers = {} } = arrived === undefined ? { status: 401 } : receiver.answer(arrived);
      log.push({ ...(arrived ?? { id: "", type: "unverified", account: "", reference: "", body }), status });
      response.writeHead(status, headers).end();
      for (const look of looks) look();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/tollgate?for=tests`,
    log,
    answer: () => ({ status: 204 }),
    until(done) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => {
        if (!done()) return;
        looks.delete(look);
        resolve();
      };
      looks.add(look);
      look();
      return promise;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return receiver;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

/** Undefined if the library does not accept the signature. */
function read(
  judge: Webhook,
  request: IncomingMessage,
  body: string,
  anyTime: boolean,
): Omit<Arrived, "status"> | undefined {
  try {
    const headers = request.headers as Record<string, string>;
    const id = headers["webhook-id"] ?? "";
    const at = new Date(Number(headers["webhook-timestamp"]) * 1_000);
    if (anyTime && !headers["webhook-signature"]?.split(" ").includes(judge.sign(id, at, body))) return undefined;
    const { type, data } = (anyTime ? JSON.parse(body) : judge.verify(body, headers)) as NoticeBody;
    return { id, type, account: data.account?.name ?? "", reference: data.reference ?? "", body };
  } catch {
    return undefined;
  }
}

/** Another secret with each word. */
export const webhookSecret = (word: string): string => `whsec_${Buffer.from(word.padEnd(32, ".")).toString("base64")}`;
