/** Words of the operator's pages. */
import type { Texts } from "../texts.ts";

export const operator: Texts["operator"] = { title: "Tollgate" };
