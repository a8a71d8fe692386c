/** The ids that a field gives to its input. */
export interface FieldIds {
  readonly id: string;
  /** The element with the hint and the error. */
  readonly describedBy: string | undefined;
}
