/**
 * Refusals by their codes, in place of the gateway's English words. Where there is no remedy here, those words are shown beside
 * the sentence, since they name the member or the figure.
 */
import type { Texts } from "../words.ts";

export const refusals: Texts["common"]["refusals"] = {
  above_cap: ["超过了管理员设定的上限。"],
  account_closed: ["此账户已关闭，无法更改。", "请向网关的管理员申请其他账户。"],
  budget_too_small: ["预算低于最小请求的费用，密钥将无法使用。"],
  code_mistyped: ["兑换码输入有误：校验位与其他字符不符。", "请与购买时收到的兑换码逐个字符核对。"],
  code_not_redeemable: [
    "此账户无法兑换该兑换码：兑换码不存在、已作废，或已被其他账户使用。",
    "请与收到的兑换码逐个字符核对。出售方可以查询它的状态。",
  ],
  expired_code: ["该兑换码已过兑换期限，没有任何变化。", "请向出售方索取新的兑换码。"],
  internal: ["网关处理时出错。", "请稍后重试；如果仍然出错，请联系网关的管理员。"],
  key_exists: ["此表单先前已经创建过密钥，其内容只显示过一次。"],
  key_revoked: ["此密钥已被吊销，无法再更改。", "请另行创建密钥。"],
  limits_contradict: ["这些限制互相矛盾。"],
  link_is_over: ["此登录链接无法打开：它已被使用或已过期。", "请向管理员索取新的链接，每个链接只能使用一次。"],
  malformed: ["输入的格式不正确。"],
  not_confirmed: ["更改已写入，但存储尚未确认它不会丢失。", "请再次发送：同一操作只计一次。"],
  other_site: ["此请求不是来自控制台自己的页面。", "请在此窗口打开控制台后重试。"],
  store_older: ["存储的数据不完整，管理员确认之前不能更改。", "请稍后重试，或联系网关的管理员。"],
  store_unavailable: ["存储没有响应；更改是否已经生效尚不确定。"],
  too_many_keys_made: ["此账户暂时不能再创建密钥：短时间内创建的密钥过多。", "请稍后再试，或联系运营者获取更多密钥。"],
  too_many_values: ["此密钥同时有效的值过多。", "请等待旧值到期，或另行创建密钥并吊销此密钥。"],
  too_many_wrong_codes: ["此账户输入了过多无法兑换的兑换码，暂时不能继续兑换。"],
  unknown_account: ["没有这个账户。", "请重新加载页面：您可能已登录其他账户。"],
  unknown_group: ["没有这个分组。"],
  unknown_key: ["没有这个密钥。", "请返回密钥列表：它不属于此账户。"],
  unknown_model: ["配置中没有这个名称的模型。"],
  unknown_request: [
    "此账户的账本中没有这个请求的记录。",
    "请完整复制编号。仍在进行、被拒绝或免费的请求没有记录，较早的记录可能已归档。",
  ],
};
