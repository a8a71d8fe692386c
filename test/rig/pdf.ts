/**
 * Small PDFs for tests, with as much structure as they need: a page tree, content streams, and plain or compressed
 * objects.
 */
import { deflateSync } from "node:zlib";

export interface PdfOptions {
  readonly pages: number;
  /** The text of each page. */
  readonly text?: string;
  /** Whether page objects are in a compressed object stream, as most programs write them. */
  readonly objectStreams?: boolean;
  /** The encoding of content streams. `ascii85` is what ReportLab writes. */
  readonly packed?: "flate" | "ascii85" | "none";
  /** Whether the page tree lists the same page repeatedly. */
  readonly oneObject?: boolean;
  /** Writes the names that count pages with escapes. */
  readonly escapedNames?: boolean;
  /** Further objects, as they are in the file. */
  readonly extra?: readonly (string | Buffer)[];
}

/** Writes a PDF, without offsets and the cross-reference table, which no test reads. */
export function pdf(options: PdfOptions): Buffer {
  const { pages, text = "Hello", objectStreams = false, packed = "flate", oneObject = false, extra = [] } = options;
  const page = options.escapedNames ? "/P#61ge" : "/Page";
  const kids = options.escapedNames ? "/#4bids" : "/Kids";
  const leaves = oneObject ? 1 : pages;
  const refs = Array.from({ length: pages }, (_, index) => `${10 + (oneObject ? 0 : index)} 0 R`);
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages ${kids} [${refs.join(" ")}] /Count ${pages} >>`,
    ...Array.from(
      { length: leaves },
      () => `<< /Type ${page} /Parent 2 0 R /Contents 5 0 R /MediaBox [0 0 612 792] >>`,
    ),
  ];
  const parts: (string | Buffer)[] = ["%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"];
  if (objectStreams) {
    parts.push(...stream(4, `/Type /ObjStm /N ${objects.length} /First 0`, Buffer.from(objects.join("\n")), "flate"));
  } else {
    for (const [index, object] of objects.entries())
      parts.push(`${index < 2 ? index + 1 : index + 8} 0 obj\n${object}\nendobj\n`);
  }
  const content = `BT /F1 12 Tf 72 720 Td (${text.replace(/[()\\]/g, "\\$&")}) Tj ET`;
  parts.push(...stream(5, "", Buffer.from(content), packed), ...extra, "trailer << /Root 1 0 R >>\n%%EOF\n");
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)));
}

/** One stream object. */
export function stream(
  id: number,
  members: string,
  data: Buffer,
  packed: "flate" | "ascii85" | "none",
): (string | Buffer)[] {
  const deflated = packed === "none" ? data : deflateSync(data);
  const body = packed === "ascii85" ? Buffer.from(`${ascii85(deflated)}~>`) : deflated;
  const filter = { flate: "/Filter /FlateDecode", ascii85: "/Filter [/ASCII85Decode /FlateDecode]", none: "" }[packed];
  return [`${id} 0 obj\n<< ${members} ${filter} /Length ${body.length} >>\nstream\n`, body, "\nendstream\nendobj\n"];
}

function ascii85(data: Buffer): string {
  let text = "";
  for (let at = 0; at < data.length; at += 4) {
    const group = Buffer.alloc(4);
    const length = data.copy(group, 0, at, at + 4);
    let value = group.readUInt32BE(0);
    if (value === 0 && length === 4) {
      text += "z";
      continue;
    }
    let digits = "";
    for (let i = 0; i < 5; i++) {
      digits = String.fromCharCode(33 + (value % 85)) + digits;
      value = Math.floor(value / 85);
    }
    text += digits.slice(0, length + 1);
  }
  return text;
}
