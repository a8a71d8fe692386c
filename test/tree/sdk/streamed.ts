/**
 * Events of streams: the result of a member is what changes if it is removed from every such event of the recorded
 * streams (test/golden/streams). An event that no recording has is inserted before the end of one.
 */
import { readdirSync, readFileSync } from "node:fs";
import { PROTOCOL_NAMES, type Protocol } from "../../../src/values/protocol.ts";
import { convertInOnePush, framesOf, routeOf, smallBody, sse } from "../../unit/convert/translate/rig.ts";
import type { Judged, Word } from "./judge.ts";
import { type Direction, rootsOf } from "./requests.ts";
import { type Json, least } from "./samples.ts";
import type { ObjectForm } from "./walk.ts";

const ROOTS: Readonly<Record<Protocol, readonly ObjectForm[]>> = {
  chat: rootsOf("chat event"),
  messages: [...rootsOf("messages beta event"), ...rootsOf("messages event")],
  responses: rootsOf("responses event"),
};

/** Streams that end properly, as lists of events; `[DONE]` stays text. */
const STREAMS = ["text", "thinking", "parallel-calls", "refusal", "several-texts", "redacted", "cached-usage"];

function recorded(upstream: Protocol): readonly (readonly unknown[])[] {
  const folder = `test/golden/streams/${upstream}`;
  const files = readdirSync(folder).filter((file) => STREAMS.some((name) => file === `${name}.sse`));
  return files.map((file) => framesOf(readFileSync(`${folder}/${file}`, "utf8")).map(({ data }) => data));
}

/** The type of a chat chunk, which has none itself. */
const CHUNK = "chat.completion.chunk";

function typeOf(event: unknown): string {
  const { type } = (typeof event === "object" && event !== null ? event : {}) as Json;
  return typeof type === "string" ? type : typeof event === "object" ? CHUNK : "";
}

class EventTrial {
  readonly #upstream: Protocol;
  readonly #client: Protocol;
  readonly #streams: readonly (readonly unknown[])[];

  constructor(upstream: Protocol, client: Protocol) {
    this.#upstream = upstream;
    this.#client = client;
    this.#streams = recorded(upstream);
  }

  judged(form: ObjectForm): readonly Judged[] {
    const type = form.tag ?? CHUNK;
    const with_ = this.#streams.filter((stream) => stream.some((event) => typeOf(event) === type));
    if (with_.length === 0) return this.#unseen(form, type);
    return form.members.map(({ name }) => {
      const changed = with_.filter((stream) => this.#told(stream) !== this.#told(without(stream, type, name)));
      const words: readonly Word[] = [changed.length > 0 ? "mapped" : "named"];
      return { path: `${type}.${name}`, words, proofs: with_.length };
    });
  }

  /** An event that is in no recording: its result is the result of all its members. */
  #unseen(form: ObjectForm, type: string): readonly Judged[] {
    const [stream = []] = this.#streams;
    const told = this.#told([...stream.slice(0, -1), least(form, type), ...stream.slice(-1)]);
    const words: readonly Word[] = [
      told === this.#told(stream) ? "named" : told.includes("error") ? "refused" : "mapped",
    ];
    return form.members.map(({ name }, at) => ({ path: `${type}.${name}`, words, proofs: at === 0 ? 1 : 0 }));
  }

  #told(stream: readonly unknown[]): string {
    const body = smallBody(this.#client, this.#client === "chat" ? { stream_options: { include_usage: true } } : {});
    const { text, fault, converter } = convertInOnePush(
      this.#client,
      body,
      routeOf(this.#upstream),
      sse(this.#upstream, stream),
    );
    return JSON.stringify([text, fault?.cause, converter.counts().usage]);
  }
}

function without(stream: readonly unknown[], type: string, name: string): readonly unknown[] {
  return stream.map((event) => {
    if (typeOf(event) !== type) return event;
    const { [name]: _, ...rest } = event as Json;
    return rest;
  });
}

/** The six directions of streams. */
export function judgedEvents(): readonly Direction[] {
  return PROTOCOL_NAMES.flatMap((upstream) =>
    PROTOCOL_NAMES.filter((client) => client !== upstream).map((client) => {
      const trial = new EventTrial(upstream, client);
      const rows = ROOTS[upstream].flatMap((form) => trial.judged(form));
      return { client, upstream, judged: [...new Map(rows.map((row) => [row.path, row])).values()] };
    }),
  );
}
