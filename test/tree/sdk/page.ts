/** docs/translated-members.md: the matrix of members and directions, from what the gateway does. */
import { readFileSync } from "node:fs";
import { PROTOCOL_NAMES } from "../../../src/values/protocol.ts";
import type { Judged, Word } from "./judge.ts";
import { type Direction, judgedRequests } from "./requests.ts";

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
  const directions = judgedRequests();
  const tables = PROTOCOL_NAMES.map((client) => {
    const own = directions.filter((direction) => direction.client === client);
    const head = own.map(({ upstream }) => `to ${upstream}`);
    const lines = rowsOf(own).map(({ place, members, words: cells }) =>
      [`\`${place}\``, members.map((name) => `\`${name}\``).join(" "), ...cells].join(" | "),
    );
    return `\n## What a ${client} client sends\n\n| in | members | ${head.join(" | ")} |\n| --- | --- | --- | --- |\n${lines.map((line) => `| ${line} |\n`).join("")}`;
  });
  return `${words}${FIRST_TABLE}\n${counted(directions)}${tables.join("")}`;
}

function counted(directions: readonly Direction[]): string {
  const lines = directions.map(({ client, upstream, judged }) => {
    const proved = judged.filter(({ proofs }) => proofs > 0).length;
    const requests = judged.reduce((sum, { proofs }) => sum + proofs, 0);
    return `| ${client} to ${upstream} | ${judged.length} | ${proved} | ${requests} |\n`;
  });
  return `| direction | members and forms | proved one by one | requests that prove them |\n| --- | --- | --- | --- |\n${lines.join("")}`;
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
