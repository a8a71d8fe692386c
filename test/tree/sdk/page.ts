/** Generates docs/translated-members.md: the matrix of members and directions, from what the gateway does. */
import { readFileSync } from "node:fs";
import { PROTOCOL_NAMES } from "../../../src/values/protocol.ts";
import type { Judged, Word } from "./judge.ts";
import { judgedReplies } from "./replies.ts";
import { type Direction, judgedRequests } from "./requests.ts";
import { judgedEvents } from "./streamed.ts";

export const FILE = "docs/translated-members.md";
const BODY = "the body";
const FIRST_TABLE = "## What is counted\n";

/** Members of an object with the same results. */
interface Row {
  readonly place: string;
  readonly members: string[];
  readonly words: readonly string[];
}

/** The whole document: the text before the first table unchanged, the rest from the gateway's results. */
export function translatedMembersDocument(): string {
  const words = readFileSync(FILE, "utf8").split(FIRST_TABLE)[0] as string;
  const requests = judgedRequests();
  const replies = judgedReplies();
  const events = judgedEvents();
  const tables = [
    ...PROTOCOL_NAMES.map((client) => {
      const own = requests.filter((direction) => direction.client === client);
      return table(`What a ${client} client sends`, own, ({ upstream }) => `to ${upstream}`);
    }),
    ...PROTOCOL_NAMES.map((upstream) => {
      const own = replies.filter((direction) => direction.upstream === upstream);
      return table(`What a ${upstream} server answers`, own, ({ client }) => `to a ${client} client`);
    }),
    ...PROTOCOL_NAMES.map((upstream) => {
      const own = events.filter((direction) => direction.upstream === upstream);
      return table(`What a ${upstream} server streams`, own, ({ client }) => `to a ${client} client`);
    }),
  ];
  const counts = `${COUNTS_HEAD}${counted("request", requests)}${counted("reply", replies)}${counted("event", events)}`;
  return `${words}${FIRST_TABLE}\n${counts}${tables.join("")}`;
}

function table(title: string, directions: readonly Direction[], nameOf: (direction: Direction) => string): string {
  const lines = rowsOf(directions).map(({ place, members, words: cells }) => {
    const names = members.map((name) => `\`${name}\``).join(" ");
    return `| ${[`\`${place}\``, names, ...cells].join(" | ")} |\n`;
  });
  const head = ["in", "members", ...directions.map(nameOf)].join(" | ");
  return `\n## ${title}\n\n| ${head} |\n| --- | --- | --- | --- |\n${lines.join("")}`;
}

const COUNTS_HEAD =
  "| what | from | to | members and forms | proved one by one | trials |\n| --- | --- | --- | --- | --- | --- |\n";

/**
 * The number of members, and how many of them have their own trials. The others share the result of what contains them.
 */
function counted(what: "request" | "reply" | "event", directions: readonly Direction[]): string {
  const lines = directions.map(({ client, upstream, judged }) => {
    const proved = judged.filter(({ proofs }) => proofs > 0).length;
    const trials = judged.reduce((sum, { proofs }) => sum + proofs, 0);
    const way = what === "request" ? [client, upstream] : [upstream, client];
    return `| ${[what, ...way, judged.length, proved, trials].join(" | ")} |\n`;
  });
  return lines.join("");
}

const ORDER: readonly Word[] = ["carried", "mapped", "named", "refused", "lost"];

function inOrder(words: readonly Word[]): string {
  return ORDER.filter((word) => words.includes(word)).join(", ");
}

/** An object without a result of its own has the results of its members. */
function innerWords(path: string, judged: readonly Judged[]): string {
  return inOrder(judged.filter((row) => isBelow(row.path, path)).flatMap((row) => row.words));
}

function isBelow(path: string, above: string): boolean {
  return path.startsWith(above) && [".", "[", "("].includes(path.charAt(above.length));
}

/**
 * Rows by the object that contains the members. An object that is refused or left out as a whole has one row with
 * everything below it.
 */
function rowsOf(directions: readonly Direction[]): readonly Row[] {
  const paths = new Set(directions.flatMap(({ judged }) => judged.map(({ path }) => path)));
  const all = directions.map(({ judged }) => new Map(judged.map((row) => [row.path, row])));
  const rows = new Map<string, Row>();
  const whole: Row[] = [];
  for (const path of paths) {
    const words = directions.map(({ judged }, at) => {
      const row = all[at]?.get(path);
      return row && row.words.length > 0 ? inOrder(row.words) : innerWords(path, judged);
    });
    const above = whole.find(({ place }) => path.startsWith(`${place}.`));
    const name = path.slice(path.lastIndexOf(".") + 1);
    if (above) {
      if (!isForm(path) && !above.members.includes(name)) above.members.push(name);
    } else if (!isForm(path)) {
      const place = path === name ? BODY : path.slice(0, -name.length - 1);
      const key = `${place} ${words.join(" ")}`;
      const row = rows.get(key) ?? { place, members: [], words };
      row.members.push(name);
      rows.set(key, row);
    } else if (words.every((word) => word === "refused" || word === "named")) {
      const row = { place: path, members: [], words };
      whole.push(row);
      rows.set(path, row);
    }
  }
  const isBody = ({ place }: Row) => place === BODY;
  return [...rows.values()].sort((one, other) => Number(isBody(other)) - Number(isBody(one)));
}

function isForm(path: string): boolean {
  return path.endsWith("]") || path.endsWith(")");
}
