/** Explains why a gateway cannot listen: names the setting and proposes another value. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import type { Address } from "../values/settings.ts";

/** The settings that name an address. */
export type AddressSetting = "listen" | "admin";

/** Ports that are tried in the search for a free one. */
const PORTS_TRIED_MAX = 20;
/** The lowest port on which any user may listen, by Linux's default. */
const FREE_FOR_ALL = 1024;
const PORT_MAX = 65_535;

export class ListenFailure extends Error {
  override readonly name = "ListenFailure";
  readonly setting: AddressSetting;
  /** What is wrong, without the setting and the advice. */
  readonly problem: string;
  /** An address that would work, in the form of the setting; undefined if none is known. */
  readonly instead: string | undefined;

  constructor(setting: AddressSetting, cause: unknown, facts: { problem: string; advice: string; instead?: string }) {
    const { problem, advice, instead } = facts;
    const other = instead === undefined ? "" : `, such as ${setting}: ${instead}`;
    super(`${problem} (setting ${setting}); ${advice}${other}`, { cause });
    this.setting = setting;
    this.problem = problem;
    this.instead = instead;
  }
}

/**
 * Turns an error of `listen` into a `ListenFailure`. Returns an unknown error unchanged.
 * @param other the gateway's other address, so that its port is not proposed.
 */
export async function listenFailure(
  setting: AddressSetting,
  address: Address,
  cause: unknown,
  other?: Address,
): Promise<unknown> {
  const { code } = cause as NodeJS.ErrnoException;
  const failure = (problem: string, advice: string, instead?: string) =>
    new ListenFailure(setting, cause, { problem, advice, ...(instead !== undefined && { instead }) });
  if (address.kind === "unix") return ofSocket(code, address.path, failure) ?? cause;
  const { host, port } = address;
  const taken = other?.kind === "unix" ? undefined : other?.port;
  const shown = host.includes(":") ? `[${host}]` : host;
  switch (code) {
    case "EADDRINUSE":
      return failure(
        `port ${port} on ${host} is in use by another program`,
        "stop that program, or use another port",
        await freeAddress(host, port + 1, taken),
      );
    case "EACCES":
      return failure(
        `this user may not listen on port ${port}`,
        "use a port from 1024 and let the front listen on this one",
        await freeAddress(host, port < FREE_FOR_ALL ? 8000 + port : port + 1, taken),
      );
    case "EADDRNOTAVAIL":
      return failure(
        `this machine has no address ${host}`,
        "use an address of this machine, or loopback",
        `${shown.startsWith("[") ? "[::1]" : "127.0.0.1"}:${port}`,
      );
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return failure(`the name ${host} has no address`, "write an address of this machine", `127.0.0.1:${port}`);
    default:
      return cause;
  }
}

function ofSocket(
  code: string | undefined,
  path: string,
  failure: (problem: string, advice: string, instead?: string) => Error,
): Error | undefined {
  const folder = dirname(path);
  switch (code) {
    case "EADDRINUSE":
      return failure(
        `another program listens on the socket ${path}, or a file of that name is in the way`,
        "stop that program, or use another path",
        `unix:${path}.2`,
      );
    case "EACCES":
    case "EPERM":
    case "ENOENT":
    case "ENOTDIR":
      // Node reports EACCES when the system reports ENOENT.
      if (existsSync(folder)) {
        return failure(
          `this user may not create a socket in ${folder}`,
          "give it write permission, or use another folder",
        );
      }
      return failure(`the folder ${folder} for the socket does not exist`, "create it, or use another one");
    case "EINVAL":
    case "ENAMETOOLONG":
      return failure(`the path of the socket is too long: ${path}`, "use a shorter one, of at most 107 bytes");
    default:
      return undefined;
  }
}

/** The first free address from a port on, or undefined. @param taken a port that must not be proposed. */
async function freeAddress(host: string, from: number, taken: number | undefined): Promise<string | undefined> {
  for (let port = from; port < from + PORTS_TRIED_MAX && port <= PORT_MAX; port++) {
    if (port !== taken && (await isFree(host, port))) return `${host.includes(":") ? `[${host}]` : host}:${port}`;
  }
  return undefined;
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  try {
    // Exclusive: in a worker process, the parent would otherwise listen on its behalf.
    server.listen({ host, port, exclusive: true });
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
