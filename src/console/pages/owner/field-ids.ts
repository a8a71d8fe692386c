/** What a field gives to the input in it. */
export interface FieldIds {
  readonly id: string;
  /** The element that says what is to be typed, and what is wrong. */
  readonly describedBy: string | undefined;
}
