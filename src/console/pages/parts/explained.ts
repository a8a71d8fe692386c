/** Explanations of requests in words of the page's language, for both sets of pages. */
import { T } from "../texts/texts.ts";

const CAUSES: Readonly<Record<string, string>> = T.common.requestCauses;
const MEANINGS: Readonly<Record<string, readonly [means: string, remedy: string]>> = T.owner.errorWords;

/** A cause in short words; one that has none as the gateway names it. */
export const causeInWords = (cause: string): string => CAUSES[cause] ?? cause;

interface SentenceForm {
  readonly pattern: RegExp;
  readonly words: string;
}

/** A name in a sentence: `{name}` or `[part]`. */
const NAME = /[{[](\w+)[}\]]/g;

const FORMS: readonly SentenceForm[] = Object.entries(T.common.explained).map(([sentence, words]) => ({
  pattern: new RegExp(`^${sentence.replace(/[.?()]/g, "\\$&").replace(NAME, "(?<$1>.*?)")}$`),
  words,
}));

/** A sentence of the gateway in words of the page's language; undefined if it has no such words. */
function found(sentence: string): string | undefined {
  for (const { pattern, words } of FORMS) {
    const parts = pattern.exec(sentence);
    if (!parts) continue;
    return words.replace(NAME, (shown: string, name: string) => {
      const part = parts.groups?.[name] ?? "";
      if (name === "cause") return causeInWords(part);
      return shown.startsWith("[") ? inWords(part) : part;
    });
  }
  return undefined;
}

/** A sentence of an explanation in words of the page's language; one that has none as the gateway wrote it. */
export const inWords = (sentence: string): string => (sentence === "" ? "" : (found(sentence) ?? sentence));

interface Explained {
  readonly expected: { readonly cause: string | null; readonly message: string };
  readonly steps: readonly { readonly ok: boolean | null; readonly words: string }[];
}

/**
 * Why the request would be refused, a paragraph each: the gateway's message; in another language what the error means,
 * then the message, or only its detail if the rest of it is said by the meaning.
 */
export function reasonsOf({ expected, steps }: Explained): readonly string[] {
  const { cause, message } = expected;
  const [means] = MEANINGS[cause ?? ""] ?? [];
  if (means === undefined) return [inWords(message)];
  const why = steps.find(({ ok }) => ok === false)?.words ?? "";
  const isCauseOnly = why.startsWith("Refused: ");
  const detail = found(why);
  if (detail === undefined) return [means, message];
  const [, model, group] = NAMES.exec(message) ?? [];
  const names = [
    ...(model === undefined ? [] : [`${T.operator.model}${T.common.colon}${model}`]),
    ...(group === undefined ? [] : [`${T.operator.group}${T.common.colon}${group}`]),
  ];
  return [means, ...(isCauseOnly ? [] : [detail]), ...names];
}

/** The names at the end of a message. */
const NAMES = /(?: Model: "(.*?)"\.)?(?: Group: "([^"]*)"\.)?$/;
