/** Sentences of an explanation, by the English one that the gateway writes. */
import type { Texts } from "../words.ts";

export const explained: Texts["common"]["explained"] = {
  "Refused: {cause}. Did you mean {model}?": "已拒绝：{cause}。您是否想用 {model}？",
  "Refused: {cause}.": "已拒绝：{cause}。",
  // Steps that a request passes.
  "The gateway can record charges.": "网关可以记录费用。",
  "The key {key} of the account {account} is valid.": "账户 {account} 的密钥 {key} 有效。",
  "A valid {protocol} body: {bytes} bytes of text, [limit], choices: {choices}.":
    "有效的 {protocol} 请求内容：{bytes} 字节文本，[limit]，回答数 {choices}。",
  "no output limit of its own": "没有自己的输出限制",
  "{model} is in the catalog, for the plans: {plans}.": "模型目录中有 {model}，适用套餐：{plans}。",
  "Everything asked for has a price: [tokens].": "所请求的内容都有价格：[tokens]。",
  "at most {input} input and {output} output tokens; at most {usd} USD":
    "最多 {input} 个输入和 {output} 个输出 token，最高 {usd} 美元",
  "at most {input} input and {output} output tokens": "最多 {input} 个输入和 {output} 个输出 token",
  "at first {input} input and {output} output tokens; at first {usd} USD":
    "起初 {input} 个输入和 {output} 个输出 token，起初 {usd} 美元",
  "at first {input} input and {output} output tokens": "起初 {input} 个输入和 {output} 个输出 token",
  "Running time cards of the group: [cards].": "此分组中生效的时长卡：[cards]。",
  "[cards]; another one begins at {instant}": "[cards]；下一张从 {instant} 开始",
  "The model is in a plan of the account: {plans}.": "该模型在账户的套餐中：{plans}。",
  "The group {group} serves the model.": "分组 {group} 提供该模型。",
  "The card {card} pays and has no quota: nothing is held.": "由时长卡 {card} 付款，它不限额度：不冻结任何金额。",
  "[payer] pays: {usd} USD held[more].": "付款方：[payer]。冻结 {usd} 美元[more]。",
  "The balance": "余额",
  "The card {card}": "时长卡 {card}",
  ", the whole worst case[more]": "，即最高费用[more]",
  ", more as the stream goes on[more]": "，随数据流的进行继续增加[more]",
  ", the highest possible because the account's recent charges exceeded its holds[more]":
    "，按最高可能计算，因为账户最近的费用超过了冻结金额[more]",
  ", with lowered limits ({limits})": "，已降低限制（{limits}）",
  "[rates]; {now} of {most} requests run now.": "[rates]；目前运行 {now} 个请求，最多 {most} 个。",
  "No rate is limited": "没有速率限制",
  "In this minute, [left] would be left": "这一分钟内还剩 [left]",
  "{requests} of {requestsMax} requests and {tokens} of {tokensMax} tokens":
    "{requests} 个请求（共 {requestsMax} 个）和 {tokens} 个 token（共 {tokensMax} 个）",
  "{requests} of {requestsMax} requests": "{requests} 个请求（共 {requestsMax} 个）",
  "{tokens} of {tokensMax} tokens": "{tokens} 个 token（共 {tokensMax} 个）",
  "{able} of {all} routes can carry the request.": "{all} 条路由中有 {able} 条可以转发此请求。",
  "The request would be sent to a model server.": "请求会发送到模型服务器。",
  // Reasons for a refusal.
  "At most {bytes} bytes are accepted.": "最多接受 {bytes} 字节。",
  "The key's group {group} is not in the configuration: it was renamed or removed.":
    "配置中没有密钥所在的分组 {group}：它已被重命名或删除。",
  "The key's group does not serve this model.": "密钥所在的分组不提供该模型。",
  "The key may use other models only.": "该密钥只能使用其他模型。",
  "The model exists, but not in the plan of this account.": "该模型存在，但不在此账户的套餐中。",
  "No time card of this group that includes the model is running.": "此分组中没有包含该模型的生效时长卡。",
  "The running time card does not have enough quota left for this request.": "生效的时长卡剩余额度不足以支付此请求。",
  "The balance does not cover the least that this request can cost.": "余额不足以支付此请求的最低费用。",
  "The rest of the [whose] [span] budget does not cover the least that this request can cost; the budget resets at {instant}.":
    "[whose][span]预算的剩余额度不足以支付此请求的最低费用；预算于 {instant} 重新开始。",
  "The rest of the [whose] [span] budget does not cover the least that this request can cost.":
    "[whose][span]预算的剩余额度不足以支付此请求的最低费用。",
  "key's": "密钥的",
  "account's": "账户的",
  daily: "每日",
  weekly: "每周",
  monthly: "每月",
  total: "总",
  "The limit of this key is [limit].": "此密钥的限制是[limit]。",
  "The limit of an account is [limit].": "一个账户的限制是[limit]。",
  "The limit is [limit].": "限制是[limit]。",
  "{count} requests per minute": "每分钟 {count} 个请求",
  "{count} request per minute": "每分钟 {count} 个请求",
  "{count} tokens per minute": "每分钟 {count} 个 token",
  "{count} token per minute": "每分钟 {count} 个 token",
  "{count} requests at once": "同时 {count} 个请求",
  "{count} request at once": "同时 {count} 个请求",
  // How a route carries the request.
  "none needed": "无需转换",
  exact: "完整转换",
  "exact; {names}": "完整转换；{names}",
  "lossy; {names}": "有损转换；{names}",
};
