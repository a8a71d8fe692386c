/** The licences of what is bundled, which their terms ask to go along. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One text for all packages in these folders. Throws where a package says nothing at all of its licence. */
export function noticesOf(folders: readonly string[]): string {
  return folders.map(noticeOf).join(`\n${"-".repeat(80)}\n\n`);
}

function noticeOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    name: string;
    version: string;
    license?: string;
  };
  const files = globSync("{LICEN[SC]E,licen[sc]e,NOTICE}*", { cwd: folder }).sort();
  if (!license && files.length === 0) throw new Error(`${name} has no licence`);
  const texts = files.map((file) => readFileSync(join(folder, file), "utf8").trim());
  return `${[`${name} ${version} (${license ?? "see below"})`, ...texts].join("\n\n")}\n`;
}
