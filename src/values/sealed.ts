/**
 * The prefix of everything that the gateway seals for a client (docs/translation-rules.md rule 38): reasoning, items,
 * and ids.
 */
export const SEALED_PREFIX = "gw1.";
