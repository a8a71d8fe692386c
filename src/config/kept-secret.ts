/** Secrets that a gateway generates and keeps in its data folder: the admin token and the sealing key. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Secret } from "../values/secret.ts";
import type { Settings } from "../values/settings.ts";

const SECRET_BYTES = 32;

/** The data folder of a process: the embedded store's folder, or the parent of the journal's folder. */
export function dataDirOf(settings: Settings): string {
  return settings.store.kind === "embedded" ? settings.store.dir : dirname(settings.journal.dir);
}

/**
 * Reads a secret from the data folder, or generates it there, readable only by this user.
 * @throws as node:fs does when the folder cannot be written.
 */
export function keptSecret(dataDir: string, name: string): Secret {
  const file = join(dataDir, name);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    // Exclusive: if two processes start at once, one makes it and the other reads it.
    writeFileSync(file, `${randomBytes(SECRET_BYTES).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const text = readFileSync(file, "utf8").trim();
  if (text === "") throw new Error(`${file} is empty; remove it, and a new one is generated`);
  return new Secret(text);
}

/**
 * The keys that seal and open what clients carry: the configured ones, then the one that the gateway generated earlier,
 * so that what was sealed with it still opens. If there are none, one is generated.
 * @throws as `keptSecret`.
 */
export function sealingKeysOf(configured: readonly Secret[], dataDir: string): readonly Secret[] {
  const isKept = configured.length === 0 || existsSync(join(dataDir, SEALING_KEY));
  return isKept ? [...configured, keptSecret(dataDir, SEALING_KEY)] : configured;
}

const SEALING_KEY = "sealing-key";
