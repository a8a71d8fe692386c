/** The licenses of bundled packages, which must be distributed with them. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One text for all packages in these folders. Throws if a package has no license information. */
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
  if (!license && files.length === 0) throw new Error(`${name} has no license`);
  const texts = files.map((file) => readFileSync(join(folder, file), "utf8").trim());
  return `${[`${name} ${version} (${license ?? "see below"})`, ...texts].join("\n\n")}\n`;
}
