/** The form of ids that contain items, shared by sealing and opening. */
import { SEALED_PREFIX } from "../../../values/sealed.ts";

/** The most bytes of JSON in one id: model output of about 100,000 tokens. Compressing them takes 5 to 15 ms. */
export const KEPT_BYTES_MAX = 512 * 1024;
/** The most characters of all sealed ids of one reply together. */
export const REPLY_ID_CHARS_MAX = 256 * 1024;

/** The context that an id is bound to in addition to its account. */
export const BINDING = "items";
/** What follows the kind in a sealed id. */
export const SEALED_MARK = `_${SEALED_PREFIX}`;
export const SEALED = new RegExp(`^[a-z]{1,16}_(${RegExp.escape(SEALED_PREFIX)}[A-Za-z0-9_-]+)$`);
export const VERSION = 1;

/**
 * The compression dictionary: text that items have in common, so that short items stay short. An id can only be opened
 * with the text it was made with, so a change needs another VERSION. The `gw1.` in it has no special meaning.
 */
export const DICTIONARY = Buffer.from(
  '"summary":[{"type":"summary_text","text":""encrypted_content":"gw1.,"phase":"final_answer"' +
    '{"id":"rs_","type":"reasoning","summary":[]{"id":"ctc_","type":"custom_tool_call","status":"completed","call_id":"' +
    '"content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]' +
    '{"id":"msg_","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text",' +
    '"annotations":[],"logprobs":[],"text":"' +
    '[{"id":"fc_","type":"function_call","status":"completed","arguments":"{\\"","call_id":"call_","name":"',
);
