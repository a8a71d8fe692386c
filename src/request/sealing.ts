/**
 * Envelopes for data that a client must return without reading it (docs/translation-rules.md rule 38): AES-256-GCM,
 * bound to the context in which they were sealed. The first key seals, all keys open, so that keys can be rotated
 * without an interruption.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { SEALED_PREFIX } from "../values/sealed.ts";
import type { Secret } from "../values/secret.ts";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const DIGEST_CHARS = 32;

export interface Sealing {
  seal(content: Uint8Array, context: string): string;
  /**
   * The same content in the same context gives the same envelope: the nonce is its HMAC, so none is used for two
   * contents. Not for secrets, because whoever has two envelopes can see that their contents are equal.
   */
  sealAlike(content: Uint8Array, context: string): string;
  open(envelope: string, context: string): Uint8Array | undefined;
  /** 32 characters of base64url, by the first key: another one after a change of keys. */
  digest(text: string): string;
}

/** @param secrets at least one; each is hashed to a key. */
export function createSealing(secrets: readonly Secret[]): Sealing {
  const keys = secrets.map((secret) => createHash("sha256").update(`tollgate sealing ${secret.reveal()}`).digest());
  const [first] = keys;
  const digestKey = createHash("sha256").update(`tollgate digests ${secrets[0]?.reveal()}`).digest();
  if (!first) throw new Error("sealing needs a key");
  const nonceKey = createHmac("sha256", first).update("tollgate nonces").digest();
  return {
    seal: (content, context) => sealWith(first, randomBytes(NONCE_BYTES), content, context),
    sealAlike(content, context) {
      const about = `${Buffer.byteLength(context)}:${context}`;
      const nonce = createHmac("sha256", nonceKey).update(about).update(content).digest().subarray(0, NONCE_BYTES);
      return sealWith(first, nonce, content, context);
    },
    open(envelope, context) {
      if (!envelope.startsWith(SEALED_PREFIX)) return undefined;
      const sealed = Buffer.from(envelope.slice(SEALED_PREFIX.length), "base64url");
      if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
      for (const key of keys) {
        const content = tryOpen(key, sealed, context);
        if (content) return content;
      }
      return undefined;
    },
    digest: (text) => createHmac("sha256", digestKey).update(text).digest("base64url").slice(0, DIGEST_CHARS),
  };
}

function sealWith(key: Buffer, nonce: Uint8Array, content: Uint8Array, context: string): string {
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
  return SEALED_PREFIX + sealed.toString("base64url");
}

function tryOpen(key: Buffer, sealed: Buffer, context: string): Uint8Array | undefined {
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(context))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined; // Sealed with another key or context, or tampered with.
  }
}
