/** Errors in Chinese; each cause that the gateway has must be here. The messages of the API itself stay English. */
import type { Cause } from "../../../../../values/errors.ts";

const FORBIDDEN = "无法访问上游，请联系管理员。";
const NO_MODEL = "此分组中没有任何已配置的账户支持该模型。";
const FIX_BODY = "请改正请求内容后重新发送。";
const BACK_OFF = "等待 retry-after 中的时间后重新发送。";
const LATER = "请稍后重试；如果持续超过十分钟，请联系管理员。";
const NEW_KEY = "请使用新的幂等键。";

export const errorWords: Readonly<Record<Cause, readonly [means: string, remedy: string]>> = {
  framing: ["HTTP 请求格式不正确。", "请发送格式正确的 HTTP/1.1 请求。"],
  request_timeout: ["请求到达耗时过长。", "请在新连接上重新发送。"],
  uri_too_long: ["请求目标过长。", "请使用文档中的路径。"],
  headers_too_large: ["请求头过大。", "请减少或缩短请求头。"],
  expectation_failed: ["只支持 Expect: 100-continue。", "请去掉 Expect 头。"],
  doubled_prefix: [
    "此地址没有内容：路径重复了 /v1 前缀。",
    "请改正客户端的基础地址；正确的地址在 x-tollgate-hint 中。",
  ],
  unknown_path: [
    "此地址没有内容。",
    "请使用 POST /v1/chat/completions、/v1/messages 或 /v1/responses，写法须完全一致。",
  ],
  method_not_allowed: ["此处不允许这种方法。", "请使用 allow 头中列出的方法。"],
  upgrade_required: ["此处不提供 WebSocket 连接。", "请通过 HTTP 以 POST 发送请求。"],
  key_in_address: [
    "地址中带有 API 密钥，会被传给网关背后的网站。",
    "请以 Authorization: Bearer <key> 或 x-api-key: <key> 发送密钥到 API 的路径。",
  ],
  missing_key: ["没有提供 API 密钥。", "请以 Authorization: Bearer <key> 或 x-api-key: <key> 发送密钥。"],
  malformed_key: ["API 密钥的写法不正确。", "请完整复制密钥：以 sk- 开头，没有空格和换行。"],
  conflicting_keys: ["提供了两个不同的 API 密钥。", "请只在一个头中发送一个密钥。"],
  bad_keys: ["此地址的认证失败次数过多。", "请等待一分钟并检查客户端发送的密钥。"],
  unknown_key: ["API 密钥不存在。", "请检查密钥，或创建新的密钥。"],
  revoked_key: ["API 密钥已被吊销。", "请创建新的密钥。"],
  suspended: ["API 密钥或其账户已暂停。", "请让管理密钥的人恢复它。"],
  expired_key: ["API 密钥已过期。", "请创建新的密钥，或延长此密钥的期限。"],
  address_not_allowed: ["不允许从此地址使用该 API 密钥。", "请从允许的地址使用，或把此地址加入密钥的限制。"],
  body_too_large: ["请求内容过大。", "请发送较小的内容。"],
  unsupported_media_type: [
    "内容必须是 UTF-8 编码的普通 JSON。",
    "请发送 Content-Type: application/json，不要带 Content-Encoding。",
  ],
  not_json: ["请求内容不是有效的 JSON 对象。", FIX_BODY],
  duplicate_field: ["请求内容中有重复的字段。", FIX_BODY],
  wrong_protocol: ["请求内容是为另一种协议写的。", "请把内容发送到其协议对应的路径。"],
  missing_field: ["缺少必需的字段。", FIX_BODY],
  wrong_type: ["字段的类型或值不正确。", FIX_BODY],
  idempotency_key: ["无法使用该 Idempotency-Key 头。", "请发送 1 到 255 个可打印 ASCII 字符，每个新请求使用新的键。"],
  unknown_model: [NO_MODEL, "请从模型目录（GET /v1/models）准确复制模型名称。"],
  idempotency_in_progress: ["使用此幂等键的请求仍在运行。", "请等待第一个请求结束。"],
  idempotency_streamed: ["使用此幂等键的数据流已经交付。", NEW_KEY],
  idempotency_finished: ["使用此幂等键的请求已经回答。", NEW_KEY],
  not_in_plan: [NO_MODEL, "请使用套餐中的模型，或换用包含它的套餐。"],
  group_mismatch: [FORBIDDEN, "请把密钥换到提供该模型的分组。"],
  model_not_allowed: [FORBIDDEN, "请使用密钥限制所允许的模型（GET /v1/models），或把此模型加入限制。"],
  no_entitlement: [FORBIDDEN, "请兑换时长卡，或把密钥换到按量付费的分组。"],
  quota_used: [FORBIDDEN, "请再兑换一张时长卡，或把密钥换到按量付费的分组。"],
  insufficient_balance: [FORBIDDEN, "请充值，或把密钥换到时长卡分组。"],
  key_budget: [FORBIDDEN, "请等待密钥的预算重新开始（x-tollgate-budget-reset），或提高预算。"],
  account_budget: [FORBIDDEN, "请等待账户的预算重新开始（x-tollgate-budget-reset），或提高预算。"],
  requests: ["已达到每分钟请求数的限制。", BACK_OFF],
  tokens: ["已达到每分钟 token 数的限制。", BACK_OFF],
  concurrency: ["同时运行的请求过多。", BACK_OFF],
  unsupported_parameter: ["该模型不支持某个参数。", "请去掉该参数。"],
  untranslatable: ["无法在不改变含义的情况下把请求转给该模型。", "请去掉所指的部分，或使用支持它的模型。"],
  upstream_rejected: ["模型服务器拒绝了请求。", FIX_BODY],
  upstream_rate_limit: ["模型服务器已达到其限制。", BACK_OFF],
  upstream_forbidden: [FORBIDDEN, LATER],
  upstream_unavailable: [FORBIDDEN, LATER],
  upstream_timeout: [FORBIDDEN, LATER],
  upstream_invalid: [FORBIDDEN, LATER],
  draining: ["本网关正在关闭。", "请重新发送请求。"],
  overloaded: ["本网关的负载超过了承受能力。", BACK_OFF],
  store_unavailable: ["目前无法读取本网关的账户。", BACK_OFF],
  store_older: ["本网关的账户数据比之前旧，正等待管理员处理。", BACK_OFF],
  journal_full: ["本网关目前无法记录费用。", BACK_OFF],
  internal: ["本网关处理此请求时出错。", "请重试一次；如果再次失败，请报告请求编号。"],
};
