/** Words of the owner's pages. */
import type { Texts } from "../words.ts";
import { cards } from "./owner/cards.ts";
import { keys } from "./owner/keys.ts";
import { overview } from "./owner/overview.ts";

export const owner: Texts["owner"] = {
  door: {
    linkOpened: "您打开了登录链接，它只能使用一次。",
    enter: "登录",
    signedOut: "您尚未登录。",
    askOperator: "请向网关的管理员索取登录链接。",
  },
  overview,
  keys,
  cards,
};
