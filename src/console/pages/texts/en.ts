/** English texts. A text with variable parts is a function of them. */
import { common } from "./en/common.ts";
import { operator } from "./en/operator/operator.ts";
import { owner } from "./en/owner.ts";

export const en = { common, owner, operator };
