/**
 * The texts of the pages in the reader's language. A language is a file and a folder, with the type of the English one.
 */
import { en } from "./en.ts";
import type { Texts } from "./words.ts";
import { zh } from "./zh.ts";

const LANGUAGES = { en, zh } as const satisfies Record<string, Texts>;
export type Language = keyof typeof LANGUAGES;
export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = { en: "English", zh: "中文" };

const KEPT = "tollgate-language";

/** The language that was chosen here before; otherwise the first available one of the browser's languages. */
export function languageNow(): Language {
  const wanted = [localStorage.getItem(KEPT) ?? "", ...navigator.languages].map((name) =>
    name.slice(0, 2).toLowerCase(),
  );
  return wanted.find((name): name is Language => name in LANGUAGES) ?? "en";
}

/** Stores the choice of a language and shows everything in it. */
export function chooseLanguage(language: Language): void {
  localStorage.setItem(KEPT, language);
  location.reload();
}

/** The texts. The language of a page does not change while it is open. */
export const T: Texts = LANGUAGES[languageNow()];
document.documentElement.lang = languageNow() === "zh" ? "zh-CN" : languageNow();
