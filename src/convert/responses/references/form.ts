/** The form of ids that hold items: what both who seals them and who opens them must know. */
import { SEALED_PREFIX } from "../../../values/sealed.ts";

/** The most bytes of JSON that one id holds: what a model says in some 100,000 tokens. To compress them takes 5 to 15 ms. */
export const KEPT_BYTES_MAX = 512 * 1024;
/** All sealed ids of one reply together, in characters. */
export const REPLY_ID_CHARS_MAX = 256 * 1024;

/** What an id is bound to beside its account. */
export const BINDING = "items";
/** How a sealed id goes on after its kind. */
export const SEALED_MARK = `_${SEALED_PREFIX}`;
export const SEALED = new RegExp(`^[a-z]{1,16}_(${RegExp.escape(SEALED_PREFIX)}[A-Za-z0-9_-]+)$`);
export const VERSION = 1;

/**
 * What items have in common, so that it costs no bytes in a short one. Another text would open no id that was made with
 * this one: a change needs another VERSION in front of what is sealed. So the `gw1.` in it is a word like the others.
 */
export const DICTIONARY = Buffer.from(
  '"summary":[{"type":"summary_text","text":""encrypted_content":"gw1.,"phase":"final_answer"' +
    '{"id":"rs_","type":"reasoning","summary":[]{"id":"ctc_","type":"custom_tool_call","status":"completed","call_id":"' +
    '"content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]' +
    '{"id":"msg_","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text",' +
    '"annotations":[],"logprobs":[],"text":"' +
    '[{"id":"fc_","type":"function_call","status":"completed","arguments":"{\\"","call_id":"call_","name":"',
);
