/**
 * Reads and checks the PEM files of a `tls` section, so that files that cannot work are refused when they are loaded.
 */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { Secret } from "../../values/secret.ts";
import type { TlsSettings } from "../../values/settings.ts";
import type { Sources } from "../expand.ts";
import type { ConfigPath } from "../problems.ts";
import type { ConfigFile } from "../schema/schema.ts";
import type { Loose, Reader } from "./reader.ts";

type TlsFile = Loose<NonNullable<ConfigFile["upstreams"][string]["tls"]>>;

/**
 * The settings of a `tls` section. A file that is missing, is not PEM, or does not match its pair is reported under its
 * key.
 */
export function readTls(reader: Reader, path: ConfigPath, tls: TlsFile, sources: Sources): TlsSettings {
  const ca = readPem(reader, [...path, "ca_file"], tls.ca_file, "CERTIFICATE", sources);
  return { ca, identity: readIdentity(reader, path, tls, sources), serverName: tls.server_name };
}

function readIdentity(reader: Reader, path: ConfigPath, tls: TlsFile, sources: Sources): TlsSettings["identity"] {
  const { cert_file: certFile, key_file: keyFile } = tls;
  if (certFile === undefined && keyFile === undefined) return undefined;
  const [given, missing] = certFile === undefined ? ["key_file", "cert_file"] : ["cert_file", "key_file"];
  if (certFile === undefined || keyFile === undefined) {
    reader.complain(
      [...path, given as string],
      `"${given}" also needs "${missing}": a certificate and its key go together`,
    );
    return undefined;
  }
  const cert = readPem(reader, [...path, "cert_file"], certFile, "CERTIFICATE", sources);
  const key = readPem(reader, [...path, "key_file"], keyFile, "PRIVATE KEY", sources);
  if (cert === undefined || key === undefined) return undefined;
  if (!belongTogether(cert, key)) {
    reader.refuse(
      [...path, "key_file"],
      "must hold the private key of the certificate in cert_file, without a passphrase",
    );
    return undefined;
  }
  return { cert, key: new Secret(key) };
}

function belongTogether(cert: string, key: string): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

const CERTIFICATES = /-----BEGIN ((?:[A-Z0-9]+ )?CERTIFICATE)-----[^-]*-----END \1-----/g;

/**
 * Whether all certificates can be read. Node silently skips one that it cannot read, and all that follow it. Without
 * the CA in it, every server would fail verification, and no message would say why.
 */
function areCertificates(text: string, begun: number): boolean {
  try {
    const read = text.match(CERTIFICATES)?.map((block) => new X509Certificate(block));
    return read?.length === begun;
  } catch {
    return false;
  }
}

/** @param label the end of the type in the first line of the PEM block; there are several types of `PRIVATE KEY`. */
function readPem(
  reader: Reader,
  path: ConfigPath,
  file: string | undefined,
  label: "CERTIFICATE" | "PRIVATE KEY",
  sources: Sources,
): string | undefined {
  if (file === undefined) return undefined;
  try {
    const text = sources.readFile(file);
    const begun = text.match(new RegExp(`-----BEGIN (?:[A-Z0-9]+ )?${label}-----`, "g"));
    if (begun && (label !== "CERTIFICATE" || areCertificates(text, begun.length))) return text;
    const readable = begun ? ", and each of them must be readable" : "";
    reader.refuse(path, `must be a PEM file with a ${label} block${readable}`);
  } catch (error) {
    reader.refuse(path, `must be a readable file (${(error as NodeJS.ErrnoException).code ?? "unreadable"})`);
  }
  return undefined;
}
