/** Certificates of test authorities, made by openssl in a folder that is removed with the process. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** A self-signed certificate for `localhost`. */
export function selfSigned(): Certificate {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-certificate-"));
  try {
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "1"];
    execFileSync("openssl", ["req", "-x509", ...curve, ...subject, "-keyout", "key.pem", "-out", "cert.pem"], {
      cwd: dir,
      stdio: "ignore",
    });
    return { key: readFileSync(join(dir, "key.pem"), "utf8"), cert: readFileSync(join(dir, "cert.pem"), "utf8") };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Writes a self-signed certificate into a folder. @returns Redis' setting names with the files. */
export function redisTlsFiles(dir: string, { key, cert }: Certificate) {
  const files = { "tls-cert-file": join(dir, "cert.pem"), "tls-key-file": join(dir, "key.pem") };
  writeFileSync(files["tls-key-file"], key);
  writeFileSync(files["tls-cert-file"], cert);
  return { ...files, "tls-ca-cert-file": files["tls-cert-file"] };
}
