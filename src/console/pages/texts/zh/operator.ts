/** Words of the operator's pages. */
import type { Texts } from "../words.ts";

export const operator: Texts["operator"] = { title: "Tollgate" };
