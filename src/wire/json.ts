/**
 * JSON at the level of bytes: a linear scan that bounds what JSON.parse may be given (finding F8), knows where the
 * top-level members stand, and lets a rule splice one member without touching the others (promise 6).
 */

/** Where one top-level member stands in the body; offsets are byte positions. */
export interface JsonMember {
  /** The member's name, escapes decoded. */
  readonly name: string;
  /** First byte of the name's opening quote. */
  readonly nameStart: number;
  /** First byte of the value. */
  readonly valueStart: number;
  /** One past the last byte of the value. */
  readonly valueEnd: number;
}

export interface JsonScan {
  readonly members: readonly JsonMember[];
  /** Offset of the closing brace of the top-level object. */
  readonly end: number;
}
