/** Words of both sets of pages. */
import type { Texts } from "../words.ts";
import { attempts } from "./attempts.ts";
import { explained } from "./explained.ts";
import { refusals } from "./refusals.ts";
import { requestCauses } from "./request-causes.ts";

export const common: Texts["common"] = {
  loading: "正在加载…",
  working: "正在处理…",
  tryAgain: "重试",
  close: "关闭",
  cancel: "取消",
  copy: "复制",
  copied: "已复制",
  more: "显示更多",
  none: "无",
  never: "从不",
  language: "语言",
  signOut: "退出登录",
  sessionEnded: "会话已结束。重新登录后会返回此页面。",
  menu: "菜单",
  skip: "跳到正文",
  unreachable: "网关没有响应。",
  unreachableRemedy: "请检查网络后重试：已发送的操作只计一次。",
  failed: "此页面出错了。",
  refusals,
  attempts,
  requestCauses,
  explained,
  notFound: "没有这个页面。",
  home: "返回概览",
  time: "时间",
  badSpan: "开始日期不能晚于结束日期。",
  csv: "下载 CSV",
  colon: "：",
  usd: (amount: string) => `${amount} 美元`,
};
