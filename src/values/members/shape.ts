/**
 * What a JSON object of a request may have: the names that are known, and what each means for the bill. A name that is
 * not listed is not guessed about.
 */

/**
 * What a known member means for the bill.
 * - `plain`: costs nothing beyond the tokens that are held and counted anyway; passes byte for byte.
 * - `tier`: changes the unit prices (a service tier, a region); needs a price of that name under `price.tiers`.
 * - `option`: buys something beside tokens, or lets the server answer with another model; needs a price of its own name
 *   under `price.options`.
 * - `limit`: an output limit under another name than the protocol's; always refused, since the hold could not follow
 *   it.
 * - `state`: refers to what a server keeps, which belongs to whoever has the credential; refused, but for
 *   `previous_response_id` where the upstream is `stateful`.
 * - `envelope`: holds members of its own that a server merges into the body, or says where and as whom to ask; left
 *   out, also where unknown members pass.
 */
export type MemberStanding = "plain" | "tier" | "option" | "limit" | "state" | "envelope";

export interface Shape {
  readonly standings: ReadonlyMap<string, MemberStanding>;
  /** The shapes of the objects, or of the elements of the arrays, under a member. What has none is data. */
  readonly inside: ReadonlyMap<string, Shape>;
  /** The known names by what they fold to. */
  readonly folded: ReadonlyMap<string, string>;
}

type Names = Partial<Readonly<Record<MemberStanding, string>>>;

/**
 * Makes a shape.
 * @param names by standing, separated by blanks and line breaks. A member with a shape inside is plain unless named.
 */
export function shape(names: Names, inside: Readonly<Record<string, Shape>> = {}): Shape {
  const standings = new Map<string, MemberStanding>();
  for (const name of Object.keys(inside)) standings.set(name, "plain");
  for (const [standing, list] of Object.entries(names)) {
    for (const name of list.split(/\s+/)) if (name !== "") standings.set(name, standing as MemberStanding);
  }
  const folded = new Map([...standings.keys()].map((name) => [foldName(name), name]));
  return { standings, inside: new Map(Object.entries(inside)), folded };
}

/** The members of two shapes together; where both know a name, the second one's word counts. */
export function joined(first: Shape, second: Shape): Shape {
  return {
    standings: new Map([...first.standings, ...second.standings]),
    inside: new Map([...first.inside, ...second.inside]),
    folded: new Map([...first.folded, ...second.folded]),
  };
}

/**
 * What a name is to the most lenient reader: compatibility forms, case and everything that is neither letter nor digit
 * are gone. Go's encoding/json reads names without regard to case, by Unicode's simple folding (so that the Kelvin sign
 * is a k and the long s an s); its successor, where asked, also without regard to `_` and `-`; Rust's and Python's
 * libraries are often set to take camelCase as well.
 */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase().replace(/[^a-z0-9]/g, "");
  // Before anything is composed with them: sorting thousands of marks takes ten times as long as all the rest.
  return name
    .replace(/\p{M}/gu, "")
    .normalize("NFKC")
    .toUpperCase()
    .toLowerCase()
    .normalize("NFKC")
    .replace(/[^\p{L}\p{N}]/gu, "");
}

/** Nearly all names; folding these in full would cost several times as much. */
const ASCII = /^[\0-\x7f]*$/;

/**
 * A letter or digit that folds to no letter or digit of ASCII, and not to nothing either, as some forms of Arabic vowel marks do: a name with
 * one is nobody's. Some of them become eighteen when they are folded, which 8,000 names of a free request would pay.
 */
const FOREIGN = /(?![\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}\ufc5e-\ufc63\ufe70-\ufe7f])[\p{L}\p{N}]/u;

/** Longer names belong to nobody: nothing that long is known, and folding it would be paid for by everybody. */
const NAME_CHARS_MAX = 128;

/** The known name that some server would take this one for, though it is not it; undefined when there is none. */
export function mistakenFor(name: string, { standings, folded }: Shape): string | undefined {
  if (standings.has(name) || isOverlong(name) || FOREIGN.test(name)) return undefined;
  return folded.get(foldName(name));
}

/** Whether a name is too long for anything known; such a name never goes upstream. */
export function isOverlong(name: string): boolean {
  return name.length > NAME_CHARS_MAX;
}
