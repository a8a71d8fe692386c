/**
 * Requests that try to become two on the way to the site: every method with every framing and every `Connection` that
 * names a header that it should not. Each carries a complete second request where a body may be.
 */
import assert from "node:assert/strict";
import type { RawSite, SeenRequest } from "../../../rig/raw-site.ts";
import { type RawResponse, RawSocket, type Target } from "../../../rig/raw-socket.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "PURGE", "QUERY"];

const CONNECTIONS = [
  undefined,
  "content-length",
  "transfer-encoding",
  "Content-Length, Transfer-Encoding",
  "keep-alive, content-length",
  "close, content-length",
  "host",
  "x-forwarded-for",
  "upgrade",
  "te, trailer, expect",
];

interface Framing {
  readonly name: string;
  readonly headers: readonly string[];
  readonly sent: string;
  /** The expected body at the site. */
  readonly body: string;
}

/** The request that an attack tries to smuggle; its header swallows what follows. */
export function smuggled(mark: string): string {
  return `GET /smuggled-${mark} HTTP/1.1\r\nHost: site.test\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n`;
}

function framings(mark: string): readonly Framing[] {
  const inner = smuggled(mark);
  const half = Math.floor(inner.length / 2);
  const chunk = (text: string, extension = "") => `${text.length.toString(16)}${extension}\r\n${text}\r\n`;
  const length = (count: number | string) => `Content-Length: ${count}`;
  const chunked = "Transfer-Encoding: chunked";
  return [
    { name: "no body", headers: [], sent: "", body: "" },
    { name: "content-length", headers: [length(inner.length)], sent: inner, body: inner },
    { name: "content-length with zeros", headers: [length(`000${inner.length}`)], sent: inner, body: inner },
    { name: "content-length 0", headers: [length(0)], sent: "", body: "" },
    { name: "chunked", headers: [chunked], sent: `${chunk(inner)}0\r\n\r\n`, body: inner },
    {
      name: "chunked in pieces, with extensions and trailers",
      headers: [chunked, "Trailer: content-length"],
      sent: `${chunk(inner.slice(0, half), ";a=b")}${chunk(inner.slice(half))}0\r\nx-trailer: 1\r\n\r\n`,
      body: inner,
    },
    { name: "chunked and empty", headers: [chunked], sent: "0\r\n\r\n", body: "" },
    {
      name: "Chunked in other letters",
      headers: ["Transfer-Encoding: Chunked"],
      sent: `${chunk(inner)}0\r\n\r\n`,
      body: inner,
    },
  ];
}

export interface Attack {
  readonly name: string;
  readonly mark: string;
  readonly method: string;
  readonly target: string;
  readonly body: string;
  /** The two parts of the bytes sent. */
  readonly head: string;
  readonly sent: string;
}

/** With the head first, a front has already passed it on when the body arrives, and cannot count the body. */
export type Pace = "in one piece" | "the head first";

/** Method x framing x `Connection`, each with a mark of its own. */
export function attacks(pace: Pace): readonly Attack[] {
  const made: Attack[] = [];
  for (const method of METHODS) {
    for (const connection of CONNECTIONS) {
      for (const index of framings("").keys()) {
        const mark = `${pace.replaceAll(" ", "-")}-${made.length}`;
        const framing = framings(mark)[index] as Framing;
        const target = `/attack-${mark}?q=${mark}`;
        const head = [
          `${method} ${target} HTTP/1.1`,
          "Host: site.test",
          ...(connection === undefined ? [] : [`Connection: ${connection}`]),
          ...framing.headers,
        ];
        const name = `${method}, ${framing.name}, Connection: ${connection ?? "(none)"}`;
        made.push({
          name,
          mark,
          method,
          target,
          body: framing.body,
          head: `${head.join("\r\n")}\r\n\r\n`,
          sent: framing.sent,
        });
      }
    }
  }
  return made;
}

export interface Outcome {
  readonly attack: Attack;
  /** The status that the attacker got, or undefined when the connection was closed without an answer. */
  readonly status: number | undefined;
  /** The faults found; empty when there are none. */
  readonly wrong: readonly string[];
}

/**
 * Sends one attack, then a visitor's own request on another connection, and checks what the site has parsed.
 * @param victim keeps its connection from one attack to the next, as a front does.
 */
export async function attackOnce(
  target: Target,
  site: RawSite,
  attack: Attack,
  pace: Pace,
  victim: Victim,
): Promise<Outcome> {
  const before = site.requests.length;
  const garbage = site.garbage.length;
  const heads = site.heads.length;
  const client = new RawSocket(target).send(attack.head);
  if (pace === "the head first" && attack.sent !== "") {
    await Promise.race([
      site.until(() => site.heads.includes(attack.target, heads)),
      client.until((text) => text !== ""),
    ]);
  }
  client.send(attack.sent);
  const [answer] = attack.method === "HEAD" ? await headResponse(client) : await client.responses(1);
  const path = `/victim-${attack.mark}`;
  const visited = await victim.visit(path);
  client.close();
  const wrong: string[] = [];
  const parsed = site.requests.slice(before);
  const own = parsed.filter((request) => request.target !== path);
  if (answer === undefined) wrong.push("no answer");
  else if (answer.body.includes("smuggled") && !answer.body.includes(attack.target)) wrong.push("another's answer");
  const refused = answer === undefined || (answer.status >= 400 && answer.status < 500);
  if (!refused || own.length > 0) wrong.push(...differences(own, attack));
  if (site.garbage.length > garbage) wrong.push("bytes that are no request");
  if (!visited.startsWith(`GET ${path} `)) wrong.push(`the next visitor got: ${visited.trim()}`);
  if (visited.includes("6.6.6.6")) wrong.push("a forged address");
  return { attack, status: answer?.status, wrong };
}

/** An answer to HEAD has a length and no body, which a client must know. */
async function headResponse(client: RawSocket): Promise<readonly Pick<RawResponse, "status" | "body">[]> {
  const text = await client.until((all) => all.includes("\r\n\r\n"));
  return text === "" ? [] : [{ status: Number(text.split(" ")[1]), body: "" }];
}

function differences(own: readonly SeenRequest[], attack: Attack): string[] {
  const wrong: string[] = [];
  if (own.length !== 1)
    wrong.push(`${own.length} requests: ${own.map((each) => `${each.method} ${each.target}`).join(", ")}`);
  const [first] = own;
  if (!first) return wrong;
  if (first.method !== attack.method) wrong.push(`method ${first.method}`);
  if (first.target !== attack.target) wrong.push(`target ${first.target}`);
  if (first.body !== attack.body) wrong.push(`a body of ${first.body.length} bytes, not ${attack.body.length}`);
  const hosts = first.headers.filter(([name]) => name === "host").map(([, value]) => value);
  if (hosts.length !== 1 || hosts[0] !== "site.test") wrong.push(`host ${hosts.join(",")}`);
  return wrong;
}

/** A well-behaved visitor on a kept connection. */
export class Victim {
  readonly #target: Target;
  #client: RawSocket | undefined;

  constructor(target: Target) {
    this.#target = target;
  }

  /** @returns the body of the answer. */
  async visit(path: string): Promise<string> {
    if (this.#client === undefined || this.#client.isClosed) this.#client = new RawSocket(this.#target);
    this.#client.send(`GET ${path} HTTP/1.1\r\nHost: site.test\r\n\r\n`);
    return (await this.#client.next())?.body ?? "(nothing)";
  }

  close(): void {
    this.#client?.close();
  }
}

/** Runs all attacks, one after the other. */
export async function attackAll(
  target: Target,
  site: RawSite,
  pace: Pace,
  list: readonly Attack[] = attacks(pace),
): Promise<readonly Outcome[]> {
  const victim = new Victim(target);
  const outcomes: Outcome[] = [];
  for (const attack of list) outcomes.push(await attackOnce(target, site, attack, pace, victim));
  victim.close();
  return outcomes;
}

/** Fails with the names of the attacks that succeeded. */
export function assertHeld(outcomes: readonly Outcome[]): void {
  const through = outcomes.filter(({ wrong }) => wrong.length > 0);
  const lines = through.map(
    ({ attack, status, wrong }) => `${attack.name} (${status ?? "no answer"}): ${wrong.join("; ")}`,
  );
  assert.deepEqual(lines, [], `${through.length} of ${outcomes.length} came through`);
}
