/** Words of the owner's pages. */
import type { Texts } from "../words.ts";
import { errorWords } from "./owner/error-words.ts";
import { help } from "./owner/help.ts";
import { models } from "./owner/models.ts";
import { tryIt } from "./owner/try.ts";
import { request, usage } from "./owner/usage.ts";

export const owner: Texts["owner"] = {
  door: {
    linkOpened: "您打开了登录链接，它只能使用一次。",
    enter: "登录",
    signedOut: "您尚未登录。",
    askOperator: "请向网关的管理员索取登录链接。",
  },
  overview: {
    title: "概览",
    balance: "余额",
    held: "冻结",
    heldHint: "正在进行的请求所占用",
  },
  usage,
  request,
  models,
  tryIt,
  help,
  errorWords,
};
