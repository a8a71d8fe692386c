/** English. Where a text has parts that change it is a function of them. */
import { common } from "./en/common.ts";
import { operator } from "./en/operator/operator.ts";
import { owner } from "./en/owner.ts";

export const en = { common, owner, operator };
