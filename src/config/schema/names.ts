/** The forms that names in the configuration have. */
import { text } from "./words.ts";

/** Names of models come from strangers' requests and are matched byte for byte. */
export const MODEL_NAMES = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$",
  rule: "starts with a letter or digit, followed by up to 127 of A-Z a-z 0-9 . _ : / -",
};
/** Names of everything else become metric labels and parts of store records. */
export const PLAIN_NAMES = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
  rule: "starts with a letter or digit, followed by up to 63 of A-Z a-z 0-9 . _ -",
};

export const plainName = (description: string) =>
  text({
    description,
    pattern: PLAIN_NAMES.pattern.slice(1, -1),
    rule: `a name that ${PLAIN_NAMES.rule}`,
  });
