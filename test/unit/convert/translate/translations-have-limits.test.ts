/** A translation never grows without bound, and never repeats raw text of a client in a header. */
import assert from "node:assert/strict";
import test from "node:test";
import { isFault } from "../../../../src/convert/exchange.ts";
import { translationHeader } from "../../../../src/convert/rules/losses.ts";
import { openTranslation } from "../../../../src/convert/translate/translate.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { SSE_EVENT_BYTES_MAX } from "../../../../src/wire/sse.ts";
import { clientRequest, convertInOnePush, countingContext, exchangeOf, routeOf, smallBody } from "./rig.ts";

test("the header names what was dropped, escaped and limited in number", () => {
  assert.equal(translationHeader([]), "exact");
  assert.equal(translationHeader(["seed", "tools[0].cache"]), "lossy; dropped=seed,tools[0].cache");
  assert.equal(translationHeader(["a\r\nset-cookie: b", "ü,x"]), "lossy; dropped=a__set-cookie__b,__x");
  const many = translationHeader(Array.from({ length: 1_000 }, () => "x".repeat(1_000)));
  assert(many.length < 1_400 && many.endsWith(",+980"));
});

test("more stop strings than the gateway can match are refused by name", () => {
  for (const stop_sequences of [Array.from({ length: 65 }, (_, i) => `s${i}`), ["x".repeat(70_000)]]) {
    const request = clientRequest("messages", smallBody("messages", { stop_sequences }));
    const permitted = { outputLimit: undefined, strict: false };
    const refused = openTranslation(request, routeOf("responses"), permitted, countingContext());
    assert(isRefusal(refused));
    assert.deepEqual([refused.cause, refused.facts.param], ["untranslatable", "stop_sequences"]);
  }
});

test("an event over the size limit ends the stream as invalid", () => {
  const { fault } = convertInOnePush(
    "messages",
    smallBody("messages"),
    routeOf("chat"),
    "x".repeat(SSE_EVENT_BYTES_MAX + 1),
  );
  assert.equal(fault?.cause, "upstream_invalid");
});

test("a whole reply that is not a JSON object in UTF-8 is a fault", () => {
  const exchange = exchangeOf("chat", smallBody("chat"), routeOf("messages"));
  for (const body of [
    Buffer.from("<html>"),
    Buffer.from("[]"),
    Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]),
    Buffer.of(),
  ]) {
    const reply = exchange.whole(body);
    assert(isFault(reply) && reply.cause === "upstream_invalid");
  }
});
