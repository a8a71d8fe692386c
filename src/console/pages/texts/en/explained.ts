/**
 * Sentences of an explanation in other words, by the gateway's sentence. Names in brackets stand for any text, which
 * takes the place of the same name in the words: `{name}` as it is, `[part]` in words if it has an entry of its own, and
 * `{cause}` in the words of the cause. If several entries fit, the first one counts. A sentence without an entry is
 * shown as the gateway has written it.
 */
export const explained: Readonly<Record<string, string>> = {
  "Refused: {cause}. Did you mean {model}?": "Refused: {cause}. Did you mean {model}?",
  "Refused: {cause}.": "Refused: {cause}.",
};
