/** Words for how an attempt at a model's server ended. */
import type { Texts } from "../words.ts";

export const attempts: Texts["common"]["attempts"] = {
  ok: "成功",
  answered: "已完整回答",
  complete: "完整",
  client_gone: "客户端已断开",
  brake: "资金用尽",
  draining: "网关正在关闭",
  orphaned: "网关中途停止",
  not_sent: "没有发出",
  refused: "被模型服务器拒绝",
  sent: "发出后失败",
  unknown_route: "路由已不在配置中",
  overloaded: "网关资源不足",
  upstream_unavailable: "模型服务器出错或无法连接",
  upstream_timeout: "模型服务器超时",
  upstream_invalid: "模型服务器的回答无法使用",
  upstream_rejected: "模型服务器拒绝了请求",
  upstream_forbidden: "模型服务器拒绝访问",
  upstream_rate_limit: "模型服务器达到限额",
};
