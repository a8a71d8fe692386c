/** An unrequested attestation: which model an authenticator is, by certificates that its sender has made. */
import { execFileSync } from "node:child_process";
import { type KeyObject, sign } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An attestation: a format, and its statement in CBOR. */
export interface Attestation {
  readonly format: string;
  readonly statement: Buffer;
}

/** What the attestation signs. */
export interface Attested {
  readonly data: Buffer;
  readonly clientDataHash: Buffer;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

/**
 * Of the format `android-key` (WebAuthn Level 3, section 8.4), valid in all that can be checked without knowing the
 * root's owner.
 * @param revocations the address in its certificate for revoked certificates.
 */
export function androidKey(
  { data, clientDataHash, publicKey, privateKey }: Attested,
  revocations: string,
): Attestation {
  const chain = certificatesOf(publicKey, clientDataHash, revocations);
  const signature = sign("sha256", Buffer.concat([data, clientDataHash]), privateKey);
  // {"alg": -7, "sig": bytes, "x5c": [bytes, ...]} (RFC 8949).
  const parts = [
    Buffer.from(`a3${text("alg")}26${text("sig")}`, "hex"),
    bytes(signature),
    Buffer.from(`${text("x5c")}8${chain.length}`, "hex"),
    ...chain.map(bytes),
  ];
  return { format: "android-key", statement: Buffer.concat(parts) };
}

/** Text of fewer than 24 characters in CBOR, as hex. */
export const text = (of: string): string => `6${of.length.toString(16)}${Buffer.from(of).toString("hex")}`;

/** Bytes in CBOR, up to 65,535. */
export function bytes(of: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x59, of.length >> 8, of.length & 0xff]), of]);
}

/** A certificate for the key, and the root that signed it. */
function certificatesOf(publicKey: KeyObject, challenge: Buffer, revocations: string): readonly Buffer[] {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-attestation-"));
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: dir, stdio: "ignore" });
  try {
    // KeyDescription of Android: versions and levels, the challenge, no id, and two empty lists of rights.
    const description = `30340201040a01010201040a01010420${challenge.toString("hex")}040030003000`;
    const extensions = [
      `1.3.6.1.4.1.11129.2.1.17=DER:${description}`,
      `crlDistributionPoints=URI:${revocations}`,
      "subjectKeyIdentifier=none",
      "authorityKeyIdentifier=none",
    ];
    writeFileSync(join(dir, "extensions"), `${extensions.join("\n")}\n`);
    writeFileSync(join(dir, "key.pem"), publicKey.export({ format: "pem", type: "spki" }));
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    openssl("req", "-x509", ...curve, "-subj", "/CN=root", "-days", "1", "-keyout", "root.key", "-out", "root.pem");
    openssl("x509", "-in", "root.pem", "-outform", "DER", "-out", "root.der");
    const signer = ["-CA", "root.pem", "-CAkey", "root.key", "-days", "1", "-extfile", "extensions"];
    const subject = ["-new", "-force_pubkey", "key.pem", "-subj", "/CN=leaf"];
    openssl("x509", ...subject, ...signer, "-outform", "DER", "-out", "leaf.der");
    return ["leaf.der", "root.der"].map((name) => readFileSync(join(dir, name)));
  } finally {
    rmSync(dir, { recursive: true });
  }
}
