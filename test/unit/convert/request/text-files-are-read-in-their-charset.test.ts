/**
 * docs/translation-rules.md rule 18: a text file is read in the charset that it names, from clients of every protocol.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Body, routeTo, translate, upstreamBody } from "./translate.ts";

const TEXT = "R\u00f6\u00f6f \u00fcber \u20ac 5";

/** The text's bytes in each charset, and how its name may be written. */
const BYTES: readonly (readonly [parameter: string, bytes: Buffer])[] = [
  ["", Buffer.from(TEXT)],
  [";charset=UTF-8", Buffer.from(TEXT)],
  [";charset=us-ascii", Buffer.from(TEXT)],
  [";charset=windows-1252", Buffer.from("R\xf6\xf6f \xfcber \x80 5", "latin1")],
  [";charset=ISO-8859-1", Buffer.from("R\xf6\xf6f \xfcber \x80 5", "latin1")],
  [';format=flowed; charset="iso-8859-15"', Buffer.from("R\xf6\xf6f \xfcber \xa4 5", "latin1")],
  [";charset=utf-16le", Buffer.from(TEXT, "utf16le")],
];

/** The document as each client writes it. */
const CLIENTS: Readonly<Record<Protocol, (type: string, data: string) => Body>> = {
  chat: (type, data) => ({
    messages: [{ role: "user", content: [{ type: "file", file: { file_data: `data:${type};base64,${data}` } }] }],
  }),
  messages: (media_type, data) => ({
    max_tokens: 100,
    messages: [{ role: "user", content: [{ type: "document", source: { type: "base64", media_type, data } }] }],
  }),
  responses: (type, data) => ({
    input: [{ role: "user", content: [{ type: "input_file", file_data: `data:${type};base64,${data}` }] }],
  }),
};

const PROTOCOLS = Object.keys(CLIENTS) as Protocol[];

for (const from of PROTOCOLS) {
  for (const to of PROTOCOLS.filter((one) => one !== from)) {
    test(`${from} to ${to}: the text is decoded correctly in each charset`, () => {
      for (const [parameter, bytes] of BYTES) {
        const asked = CLIENTS[from](`text/plain${parameter}`, bytes.toString("base64"));
        const sent = JSON.stringify(upstreamBody(from, asked, routeTo(to)));
        assert.ok(sent.includes(JSON.stringify(TEXT)), `${parameter}: ${sent}`);
      }
    });

    test(`${from} to ${to}: an unknown charset is refused and named`, () => {
      const refused = translate(from, CLIENTS[from]("text/plain;charset=ebcdic-cp-fi", "AAAA"), routeTo(to));
      assert.ok(isRefusal(refused));
      assert.equal(refused.cause, "untranslatable");
      assert.match(String(refused.facts.detail), /"ebcdic-cp-fi"/);
    });
  }
}
