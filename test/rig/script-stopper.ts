/**
 * A proxy in front of Redis that stops a script after a given number of its commands. What the script has written
 * stays, as when it stops because of a missing permission, a key of the wrong type, or a slot in migration. The script
 * can execute nothing more after that, so it cannot clean up either.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { Messages } from "./resp.ts";

/** The beginning of a script by which the proxy recognizes it. */
export interface StoppableScript {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
}

export interface ScriptStopper {
  readonly url: string;
  /**
   * Stops the next run of this script, after `skip` others, before its n-th command, counted from 1. After that no
   * script reaches Redis until `goOn`.
   */
  stopAt(script: string, command: number, skip?: number): void;
  /**
   * @returns the command that the script was about to execute when it stopped, such as `HDEL {a:X}:h`; undefined if it
   * ended before.
   */
  goOn(): string | undefined;
  /** Runs another source in place of a script from now on. */
  replace(script: string, source: string): void;
  close(): Promise<void>;
}

/** Lua code that replaces `redis.call` and counts the commands. */
const COUNTED = `local redis = (function(real)
  local count = 0
  local function counted(call)
    return function(...)
      count = count + 1
      local command, key, field = ...
      if command ~= 'HINCRBY' then field = '' end
      if count >= STOP then error({ err = 'STOPPED ' .. command .. ' ' .. (key or '') .. ' ' .. field }) end
      return call(...)
    end
  end
  return { call = counted(real.call), pcall = counted(real.pcall), error_reply = real.error_reply,
    status_reply = real.status_reply, acl_check_cmd = real.acl_check_cmd, sha1hex = real.sha1hex, log = real.log }
end)(redis)`;

/** The script with code inserted before its first line, after its shebang. */
export function withInFront(source: string, lua: string): string {
  const [shebang, ...rest] = source.startsWith("#!") ? source.split("\n") : ["", ...source.split("\n")];
  return [...(shebang ? [shebang] : []), lua.replaceAll("\n", " "), ...rest].join("\n");
}

const stoppedAt = (source: string, command: number): string =>
  withInFront(source, COUNTED.replace("STOP", `${command}`));

interface Plan {
  readonly script: string;
  readonly command: number;
  skip: number;
  state: "armed" | "running" | "stopped" | "missed";
  found: string | undefined;
}

export async function startScriptStopper(
  redisPort: number,
  scripts: readonly StoppableScript[],
): Promise<ScriptStopper> {
  const byName = new Map(scripts.map((script) => [script.name, script]));
  const bySha = new Map(scripts.map((script) => [script.sha, script]));
  const bySource = new Map(scripts.map((script) => [script.source, script]));
  const replaced = new Map<string, string>();
  let plan: Plan | undefined;

  /** What is sent in place of a script; undefined: an error of the proxy. */
  function sourceFor(script: StoppableScript): { source: string; planned: boolean } | undefined {
    const source = replaced.get(script.name) ?? script.source;
    if (plan?.state === "stopped") return undefined;
    if (plan?.state !== "armed" || plan.script !== script.name || plan.skip-- > 0) return { source, planned: false };
    plan.state = "running";
    return { source: stoppedAt(source, plan.command), planned: true };
  }

  function serve(client: Socket): void {
    const redis = connect(redisPort, "127.0.0.1");
    const commands = new Messages();
    const replies = new Messages();
    /** In the order of the commands: a reply of Redis, of the planned script or another, or an error of the proxy. */
    const owed: ("reply" | "planned" | Buffer)[] = [];
    const end = (): void => {
      client.destroy();
      redis.destroy();
    };
    for (const socket of [client, redis]) {
      socket.on("error", () => undefined);
      socket.on("close", end);
    }
    const flush = (): void => {
      for (let first = owed[0]; first instanceof Buffer; first = owed[0]) {
        owed.shift();
        client.write(first);
      }
    };
    client.on("data", (chunk: Buffer) => {
      for (const command of commands.push(chunk)) {
        const words = wordsOf(command);
        const isScript = /^eval(sha)?$/i.test(words[0] ?? "");
        const script = isScript ? (bySha.get(words[1] ?? "") ?? bySource.get(words[1] ?? "")) : undefined;
        const sent = script && sourceFor(script);
        if (!script) {
          owed.push("reply");
          redis.write(command);
        } else if (!sent) {
          owed.push(Buffer.from("-BUSY stopped by the test\r\n"));
        } else {
          owed.push(sent.planned ? "planned" : "reply");
          redis.write(messageOf(["EVAL", sent.source, ...words.slice(2)]));
        }
      }
      flush();
    });
    redis.on("data", (chunk: Buffer) => {
      for (const reply of replies.push(chunk)) {
        if (owed.shift() === "planned" && plan) {
          plan.found = /^-STOPPED (?<at>.*?) +script: /.exec(reply.toString())?.groups?.at;
          plan.state = plan.found === undefined ? "missed" : "stopped";
        }
        client.write(reply);
        flush();
      }
    });
  }

  const links = new Set<Socket>();
  const server = createServer((client) => {
    links.add(client);
    client.once("close", () => links.delete(client));
    serve(client);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `redis://127.0.0.1:${address.port}`,
    stopAt(script, command, skip = 0) {
      if (!byName.has(script)) throw new Error(`no script ${script}`);
      plan = { script, command, skip, state: "armed", found: undefined };
    },
    goOn() {
      const found = plan?.found;
      plan = undefined;
      return found;
    },
    replace: (script, source) => void replaced.set(script, source),
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const link of links) link.destroy();
      await closed;
    },
  };
}

/** The words of a command as clients send it: an array of bulk strings. */
function wordsOf(command: Buffer): string[] {
  const words: string[] = [];
  let at = command.indexOf("\r\n") + 2;
  while (at < command.length) {
    const lineEnd = command.indexOf("\r\n", at);
    const length = Number(command.toString("latin1", at + 1, lineEnd));
    words.push(command.toString("utf8", lineEnd + 2, lineEnd + 2 + length));
    at = lineEnd + 2 + length + 2;
  }
  return words;
}

function messageOf(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}
