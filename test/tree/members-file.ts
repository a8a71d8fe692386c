/**
 * Generates the tables of docs/members.md from the code. `npm run members` writes them, and those of
 * docs/translated-members.md, after the hand-written text.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { SHARED } from "../../src/values/members/shared.ts";
import { MEMBERS, type MemberMeaning, type Shape } from "../../src/values/members.ts";
import { PROTOCOL_NAMES } from "../../src/values/protocol.ts";

const FILE = "docs/members.md";
const FIRST_TABLE = "## On every protocol\n";
const MEANINGS: readonly MemberMeaning[] = ["plain", "tier", "option", "limit", "state", "envelope"];

const coded = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(" ");

/** The members of a shape by meaning, without those that another shape has already shown. */
function byMeaning({ meanings }: Shape, shown?: Shape): string {
  const lines = MEANINGS.map((meaning) => {
    const names = [...meanings].filter(([name, own]) => own === meaning && shown?.meanings.get(name) !== own);
    return names.length === 0 ? "" : `| ${meaning} | ${coded(names.map(([name]) => name))} |\n`;
  });
  return `\n| meaning | members |\n| --- | --- |\n${lines.join("")}`;
}

function* objects({ inside }: Shape, path: readonly string[]): Generator<string> {
  for (const [name, inner] of inside) {
    const here = [...path, name];
    const names = [...inner.meanings].map(([own, meaning]) =>
      meaning === "plain" ? `\`${own}\`` : `\`${own}\` (${meaning})`,
    );
    yield `| \`${here.join(".")}\` | ${names.join(" ")} |\n`;
    yield* objects(inner, here);
  }
}

/** The whole document: the text before the first table unchanged, and the tables from the code. */
export function membersDocument(): string {
  const words = readFileSync(FILE, "utf8").split(FIRST_TABLE)[0] as string;
  const protocols = PROTOCOL_NAMES.map((protocol) => {
    const shape = MEMBERS[protocol];
    const below = `\n| object | its members |\n| --- | --- |\n${[...objects(shape, [])].join("")}`;
    return `\n## On ${protocol}\n${byMeaning(shape, SHARED)}${below}`;
  });
  return `${words}${FIRST_TABLE}${byMeaning(SHARED)}${protocols.join("")}`;
}

if (import.meta.main) {
  writeFileSync(FILE, membersDocument());
  // Imported only here, because it starts the TypeScript compiler.
  const { FILE: translated, translatedMembersDocument } = await import("./sdk/page.ts");
  writeFileSync(translated, translatedMembersDocument());
}
