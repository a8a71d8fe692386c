/**
 * Estimates how many tokens a text has, by its characters. The figures come from public tokenizers; if these differ,
 * the higher figure is used, so that no script, number or code costs less than it should
 * (docs/decisions/what-a-disconnect-costs.md has the table).
 */

/** Kinds of characters; `WIDE` is everything beyond ASCII. */
const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
const BLANK = 4;
const LINE = 5;
const SIGN = 6;
const WIDE = 7;

const KINDS: Uint8Array = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code >= 0x61 && code <= 0x7a) return LOWER;
  if (code >= 0x41 && code <= 0x5a) return UPPER;
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  if (code === 0x20 || code === 0x09) return BLANK;
  return code === 0x0a || code === 0x0d ? LINE : SIGN;
});

/** Weights are twentieths of a token. */
const PARTS_PER_TOKEN = 20;

/** Weights of UTF-16 units beyond ASCII, up to the given code (excluded). */
const WIDE_WEIGHTS: readonly (readonly [below: number, weight: number])[] = [
  [0x0180, 12], // Latin with accents
  [0x0250, 40], // rarer ones: a token for each byte
  [0x0370, 36], // phonetic signs, accents by themselves
  [0x0400, 20], // Greek
  [0x0460, 11], // Cyrillic
  [0x0530, 40], // its rarer letters
  [0x0590, 36], // Armenian
  [0x0700, 20], // Hebrew, Arabic
  [0x0900, 40], // Syriac and others
  [0x0e00, 21], // the scripts of India
  [0x0f00, 24], // Thai, Lao
  [0x1100, 50], // Tibetan, Burmese, Georgian
  [0x1e00, 60], // Ethiopic, Cherokee, Khmer, Mongolian and others
  [0x1f00, 24], // Vietnamese
  [0x2000, 40], // old Greek
  [0x2030, 20], // dashes, quotes
  [0x3000, 40], // arrows, mathematics
  [0x3400, 22], // Kana
  [0x4e00, 45], // rare Han
  [0xa000, 23], // Han
  [0xac00, 60], // rare scripts: a token for each byte
  [0xd7b0, 21], // Hangul
  [0xd800, 60],
  [0xe000, 29], // half of a surrogate pair: emoji, rarer still
  [0xff00, 60],
  [0xfff0, 24], // full width
  [0x10000, 60],
];

/** Longer runs of letters are not words but noise, with two letters per token. */
const WORD_LETTERS_MAX = 12;

/*
 * The weight of a character depends on its kind and on the state before it. The state is a number: the kind of the last
 * character, and how many letters or digits are in the current run. So a table holds each step: the weight, then the
 * next state.
 */
const KIND_BITS = 3;
const RUN_BITS = 4;
const STATE_BITS = KIND_BITS + RUN_BITS;
const STATE_MASK = (1 << STATE_BITS) - 1;
/** A longer run weighs the same as one of this length. */
const RUN_MAX = WORD_LETTERS_MAX + 1;
const AT_BEGINNING = (LINE << RUN_BITS) | 1;

/** Indexed by the state, then the kind of the next character. */
const STEPS = new Uint16Array(1 << (STATE_BITS + KIND_BITS));
/** The same if that character repeats the one before. */
const STEPS_REPEATED = new Uint16Array(STEPS.length);
const ALL_KINDS = [LOWER, UPPER, DIGIT, BLANK, LINE, SIGN, WIDE];
for (const before of ALL_KINDS) {
  for (let run = 1; run <= RUN_MAX; run++) {
    for (const kind of ALL_KINDS) {
      const at = (((before << RUN_BITS) | run) << KIND_BITS) | kind;
      const runNow = goesOn(kind, before) ? Math.min(run + 1, RUN_MAX) : 1;
      const after = (kind << RUN_BITS) | runNow;
      STEPS[at] = (weightOf(kind, before, { run, runNow, isRepeated: false }) << STATE_BITS) | after;
      STEPS_REPEATED[at] = (weightOf(kind, before, { run, runNow, isRepeated: true }) << STATE_BITS) | after;
    }
  }
}

/*
 * Two steps at once, indexed by the state, the kinds of both characters, and whether each repeats the one before (2 for
 * the first, 1 for the second). Each step must wait for the state of the previous one: with half as many steps, 1,000
 * characters take 2.2 us instead of 4.5.
 */
const FIRST_SHIFT = KIND_BITS + 2;
const SECOND_SHIFT = 2;
const FIRST_REPEATED = 2;
const SECOND_REPEATED = 1;
const PAIR_BITS = 2 * KIND_BITS + 2;
const PAIRS = new Uint16Array(1 << (STATE_BITS + PAIR_BITS));
for (let at = 0; at < PAIRS.length; at++) {
  const first = (at & FIRST_REPEATED) === 0 ? STEPS : STEPS_REPEATED;
  const second = (at & SECOND_REPEATED) === 0 ? STEPS : STEPS_REPEATED;
  const step = first[at >> FIRST_SHIFT] as number;
  const two = (at >> SECOND_SHIFT) & ((1 << KIND_BITS) - 1);
  const further = second[((step & STATE_MASK) << KIND_BITS) | two] as number;
  PAIRS[at] = (step & ~STATE_MASK) + further;
}

/** Whether a run of letters, or of digits, continues. */
function goesOn(kind: number, before: number): boolean {
  return (isLetter(kind) && isLetter(before)) || (kind === DIGIT && before === DIGIT);
}

function isLetter(kind: number): boolean {
  return kind === LOWER || kind === UPPER;
}

interface CharsInARow {
  /** Length of the run of letters, or digits, before the character. */
  readonly run: number;
  /** The same including the character. */
  readonly runNow: number;
  readonly isRepeated: boolean;
}

/** The weight of a character after another one; 0 beyond ASCII, where characters have weights of their own. */
function weightOf(kind: number, before: number, { run, runNow, isRepeated }: CharsInARow): number {
  switch (kind) {
    case LOWER:
      return (runNow > WORD_LETTERS_MAX && !isRepeated ? 11 : 5) + (before === DIGIT ? 15 : 0);
    case UPPER:
      return before === LOWER ? 25 : before === UPPER ? 8 : before === DIGIT ? 20 : 6;
    case DIGIT:
      return before === DIGIT ? 8 : isLetter(before) ? 20 : 14;
    case BLANK:
    case LINE:
      return blankWeight(kind, before, (isLetter(before) || before === DIGIT) && run === 1);
    case SIGN:
      return isRepeated ? 3 : before === SIGN ? 13 : before === DIGIT ? 18 : 9;
    default:
      return 0;
  }
}

/** @param behindOne whether a single letter or digit comes before it: then both are tokens of their own. */
function blankWeight(kind: number, before: number, behindOne: boolean): number {
  const first = before !== BLANK && before !== LINE;
  const own = kind === LINE ? (before === LINE ? 1 : 15) : first ? 5 : 1;
  return own + (behindOne ? 10 : 0);
}

/**
 * The weight of a unit by its row of sixteen: each boundary above lies between rows. Searching for the range took half
 * a second for 30 MB of Han, and blocked all other requests.
 */
const WIDE_ROW_BITS = 4;
const WIDE_BY_ROW = new Uint8Array(0x1_0000 >> WIDE_ROW_BITS);
for (const [below, weight] of WIDE_WEIGHTS.toReversed()) WIDE_BY_ROW.fill(weight, 0, below >> WIDE_ROW_BITS);

/**
 * ASCII texts from this length on are weighed as bytes, which takes half the time, because a string must be read unit
 * by unit.
 */
const LONG_CHARS = 32;
const ASCII = Buffer.allocUnsafeSlow(8_192);

/** Weighs a text piece by piece; the result does not depend on where it was cut. */
export class TextTokens {
  #weight = 0;
  #state = AT_BEGINNING;
  #codeBefore = 0;

  /** Tokens of everything that was added, including fractions. */
  get tokens(): number {
    return this.#weight / PARTS_PER_TOKEN;
  }

  /** Adds a text. @param bytes its length in UTF-8, if already known. */
  add(text: string, bytes = Buffer.byteLength(text)): void {
    if (text.length < LONG_CHARS || bytes !== text.length) {
      this.#addText(text);
      return;
    }
    for (let at = 0; at < text.length; at += ASCII.length) {
      this.addAscii(ASCII, 0, ASCII.write(text.slice(at, at + ASCII.length), "latin1"));
    }
  }

  /** Adds tokens that are not text. */
  addTokens(tokens: number): void {
    this.#weight += tokens * PARTS_PER_TOKEN;
  }

  /** Adds bytes; each must be one character. */
  addAscii(source: Uint8Array, start: number, end: number): void {
    let weight = 0;
    let state = this.#state;
    let codeBefore = this.#codeBefore;
    let i = start;
    for (; i < end - 1; i += 2) {
      const one = source[i] as number;
      const two = source[i + 1] as number;
      const kinds = ((KINDS[one] as number) << FIRST_SHIFT) | ((KINDS[two] as number) << SECOND_SHIFT);
      const repeated = (one === codeBefore ? FIRST_REPEATED : 0) | (two === one ? SECOND_REPEATED : 0);
      const step = PAIRS[(state << PAIR_BITS) | kinds | repeated] as number;
      weight += step >> STATE_BITS;
      state = step & STATE_MASK;
      codeBefore = two;
    }
    if (i < end) {
      const code = source[i] as number;
      const at = (state << KIND_BITS) | (KINDS[code] as number);
      const step = (code === codeBefore ? STEPS_REPEATED[at] : STEPS[at]) as number;
      weight += step >> STATE_BITS;
      state = step & STATE_MASK;
      codeBefore = code;
    }
    this.#weight += weight;
    this.#state = state;
    this.#codeBefore = codeBefore;
  }

  #addText(text: string): void {
    let weight = 0;
    let state = this.#state;
    let codeBefore = this.#codeBefore;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      const kind = code < 128 ? (KINDS[code] as number) : WIDE;
      const at = (state << KIND_BITS) | kind;
      const step = (code === codeBefore ? STEPS_REPEATED[at] : STEPS[at]) as number;
      weight += kind === WIDE ? (WIDE_BY_ROW[code >> WIDE_ROW_BITS] as number) : step >> STATE_BITS;
      state = step & STATE_MASK;
      codeBefore = code;
    }
    this.#weight += weight;
    this.#state = state;
    this.#codeBefore = codeBefore;
  }
}
