/**
 * Addresses in a conversation (ARCHITECTURE.md promise 14, docs/failure-model.md row 57): an address that the server
 * would open with its own rights, or with the credential that all tenants share, is refused, and the refusal names the
 * member.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { Protocol } from "../../../src/values/protocol.ts";

function refusedIn(protocol: Protocol, content: object): string | undefined {
  const turns = [{ role: "user", content: [content] }];
  const body = protocol === "responses" ? { model: "m", input: turns } : { model: "m", max_tokens: 9, messages: turns };
  const read = readEnvelope(protocol, Buffer.from(JSON.stringify(body)));
  if (!isRefusal(read)) return undefined;
  assert.equal(read.cause, "wrong_type");
  return read.facts.param;
}

/** Every member with an address, and how a refusal names it. */
const PLACES: readonly (readonly [Protocol, (address: string) => object, string])[] = [
  ["chat", (url) => ({ type: "image_url", image_url: { url } }), "image_url[].url"],
  ["chat", (url) => ({ type: "image_url", image_url: url }), "content[].image_url"],
  ["chat", (url) => ({ type: "video_url", video_url: { url } }), "video_url[].url"],
  ["chat", (url) => ({ type: "audio_url", audio_url: { url } }), "audio_url[].url"],
  ["chat", (data) => ({ type: "input_audio", input_audio: { data, format: "wav" } }), "input_audio[].data"],
  ["chat", (data) => ({ type: "file", file: { file_data: data } }), "file[].file_data"],
  ["chat", (url) => ({ type: "file", file: { file_url: url } }), "file[].file_url"],
  ["messages", (url) => ({ type: "image", source: { type: "url", url } }), "source[].url"],
  ["messages", (url) => ({ type: "document", source: { type: "url", url } }), "source[].url"],
  [
    "messages",
    (url) => ({ type: "tool_result", tool_use_id: "t", content: [{ type: "image", source: { type: "url", url } }] }),
    "source[].url",
  ],
  ["chat", (url) => ({ type: "text", attachments: [{ file_url: url }] }), "attachments[].file_url"],
  ["messages", (url) => ({ type: "text", document: { source: { type: "url", url } } }), "source[].url"],
  // Members that only some servers have.
  ["chat", (url) => ({ type: "document_url", document_url: url }), "content[].document_url"],
  ["chat", (url) => ({ type: "document_url", document_url: { url } }), "document_url[].url"],
  ["chat", (data) => ({ type: "input_audio", input_audio: data }), "content[].input_audio"],
  ["chat", (url) => ({ type: "audio", audio: url }), "content[].audio"],
  ["chat", (url) => ({ type: "image", image: url }), "content[].image"],
  ["chat", (url) => ({ type: "image", image: { url } }), "image[].url"],
  ["chat", (data) => ({ type: "image", image: { data } }), "image[].data"],
  ["chat", (url) => ({ type: "video", video: [url] }), "content[].video"],
  ["chat", (url) => ({ type: "video", video: { url } }), "video[].url"],
  ["chat", (url) => ({ type: "file", file: { file_uri: url } }), "file[].file_uri"],
  ["chat", (url) => ({ images: ["iVBORw0KGgo=", url] }), "content[].images"],
  ["chat", (url) => ({ images: [{ url }] }), "images[].url"],
  ["chat", (url) => ({ images: [{ type: "image_url", image_url: { url } }] }), "image_url[].url"],
  ["chat", (url) => ({ file_data: { mime_type: "image/png", file_uri: url } }), "file_data[].file_uri"],
  ["chat", (url) => ({ type: "image_url", image_url: { url: [url] } }), "image_url[].url"],
  ["chat", (url) => ({ type: "image_url", image_url: [{ url }] }), "image_url[].url"],
  ["chat", (url) => ({ input_image: url }), "content[].input_image"],
  ["chat", (url) => ({ input_video: [url] }), "content[].input_video"],
  ["responses", (url) => ({ type: "input_image", image_url: [url] }), "content[].image_url"],
  ["responses", (url) => ({ type: "input_image", image_url: url }), "content[].image_url"],
  ["responses", (url) => ({ type: "input_file", file_url: url }), "content[].file_url"],
  ["responses", (data) => ({ type: "input_file", file_data: data }), "content[].file_data"],
];

const OWN = [
  "gs://operator-bucket/x.png",
  "s3://bucket/x.png",
  "file:///etc/passwd",
  "FILE:///etc/passwd",
  "/etc/secrets.png",
  "..\\x.png",
  "ftp://host/x.png",
  " gs://bucket/x",
  "oss://bucket/x",
  "httpx://host/x",
  "xhttp://host/x",
];
const ANYBODYS = [
  "https://example.com/x.png",
  "HTTP://example.com/",
  " https://example.com/x",
  "data:image/png;base64,AAAA",
  "data:text/plain,hello%20you",
  "iVBORw0KGgo=",
  "iVBO\nRw0KGgo=",
  "",
];

test("addresses that are public and data that is sent inline pass", () => {
  for (const [protocol, around] of PLACES) {
    for (const address of ANYBODYS) assert.equal(refusedIn(protocol, around(address)), undefined, address);
  }
});

test("all other addresses are refused, and the refusal names the member", () => {
  for (const [protocol, around, place] of PLACES) {
    for (const address of OWN) assert.equal(refusedIn(protocol, around(address)), place, address);
  }
});

test("text and data that look like an address pass", () => {
  for (const [protocol, content] of [
    ["chat", { type: "text", text: "file:///etc/passwd" }],
    ["messages", { type: "document", source: { type: "text", media_type: "text/plain", data: "gs://bucket: text" } }],
    ["messages", { type: "search_result", source: "gs://bucket/x", title: "t", content: [] }],
    ["messages", { type: "tool_use", id: "t", name: "n", input: { image_url: "file:///etc/passwd" } }],
    ["messages", { type: "web_search_tool_result", content: [{ type: "web_search_result", url: "about:blank" }] }],
  ] as const) {
    assert.equal(refusedIn(protocol, content), undefined, JSON.stringify(content));
  }
});

/** A mask with an address, and the member that a refusal names; servers differ in what they accept as an image. */
const MASKS: readonly (readonly [(address: string) => unknown, string])[] = [
  [(url) => ({ image_url: url }), "input_image_mask[].image_url"],
  [(url) => ({ image_url: { url } }), "image_url[].url"],
  [(url) => [{ image_url: url }], "input_image_mask[].image_url"],
];

test("the mask of an image tool is checked like an image, whatever the type of the tool and wherever it is listed", () => {
  const plain = { type: "function", name: "f" };
  for (const [around, place] of MASKS) {
    for (const [address, expected] of [...OWN.map((one) => [one, place]), ...ANYBODYS.map((one) => [one, undefined])]) {
      for (const type of ["image_generation", "function", undefined]) {
        const tools = [plain, { type, name: "i", input_image_mask: around(address as string) }];
        for (const more of [{ tools }, { input: [{ type: "additional_tools", tools }] }]) {
          const body = JSON.stringify({ model: "m", input: "a", ...more });
          const read = readEnvelope("responses", Buffer.from(body));
          assert.equal(isRefusal(read) ? read.facts.param : undefined, expected, body);
        }
      }
    }
  }
});
