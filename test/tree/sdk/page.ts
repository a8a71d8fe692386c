/** docs/translated-members.md: the matrix of members and directions, from what the gateway does. */
import { readFileSync } from "node:fs";
import { PROTOCOL_NAMES } from "../../../src/values/protocol.ts";
import type { Judged, Word } from "./judge.ts";
import { judgedReplies } from "./replies.ts";
import { type Direction, judgedRequests } from "./requests.ts";
import { judgedEvents } from "./streamed.ts";

export const FILE = "docs/translated-members.md";
const BODY = "the body";
const FIRST_TABLE = "## What is counted\n";

/** An object's members that share their fate. */
interface Row {
  readonly place: string;
  readonly members: string[];
  readonly words: readonly string[];
}

/** The whole document: the words before the first table as they stand, the rest as the gateway has it. */
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

/** How many there are, and how many of them have trials of their own; the others share the fate of what holds them. */
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

/** An object that says nothing by itself fares as its members do. */
function innerWords(path: string, judged: readonly Judged[]): string {
  return inOrder(judged.filter((row) => isBelow(row.path, path)).flatMap((row) => row.words));
}

function isBelow(path: string, above: string): boolean {
  return path.startsWith(above) && [".", "[", "("].includes(path.charAt(above.length));
}

/** Rows by the object that holds the members; an object that is refused or left out whole has one row with all below it. */
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
