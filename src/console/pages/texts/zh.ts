/** Chinese, simplified. */
import type { Texts } from "./words.ts";
import { common } from "./zh/common.ts";
import { operator } from "./zh/operator/operator.ts";
import { owner } from "./zh/owner.ts";

export const zh: Texts = { common, owner, operator };
