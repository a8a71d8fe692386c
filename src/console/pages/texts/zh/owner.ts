/** Words of the owner's pages. */
import type { Texts } from "../words.ts";
import { cards } from "./owner/cards.ts";
import { errorWords } from "./owner/error-words.ts";
import { help } from "./owner/help.ts";
import { keys } from "./owner/keys.ts";
import { models } from "./owner/models.ts";
import { overview } from "./owner/overview.ts";
import { tryIt } from "./owner/try.ts";
import { request, usage } from "./owner/usage.ts";

export const owner: Texts["owner"] = {
  mayOnlyLook: {
    suspended: "您的账户已被暂停。在管理员恢复之前，您可以查看所有内容，但不能更改。",
    closed: "您的账户已关闭。您可以查看所有内容，但不能更改。",
  },
  signIn: {
    linkOpened: "您打开了登录链接，它只能使用一次。",
    enter: "登录",
    signedOut: "您尚未登录。",
    askOperator: "否则请向网关的管理员索取登录链接。",
    byPasskey: "使用通行密钥登录",
    byProvider: (label: string) => `使用 ${label} 登录`,
    byFront: (name: string) => `以 ${name} 的身份继续`,
    refused: {
      oidc_over: "此次登录是在其他窗口开始的、已被使用或已超时。请重新开始。",
      oidc_refused: "身份提供方未能确认您的身份。",
      oidc_no_account: "没有与身份提供方给出的名称对应的账户。请联系管理员。",
      oidc_unreachable: "身份提供方没有响应。请稍后重试。",
      claim_missing: "身份提供方没有给出您的账户名称。请联系管理员。",
      claim_no_name: "身份提供方给出的内容不能作为账户名称。请联系管理员。",
      email_unverified: "身份提供方尚未验证您的电子邮件地址。请先在那里验证，然后重新开始。",
      too_many_attempts: "来自您的地址的登录尝试过多。请等待一分钟。",
      too_many_sign_ins: "最近几分钟内登录次数过多。请等待一分钟，然后重新开始。",
    },
    refusedOtherwise: "登录失败。请重新开始，或联系管理员。",
  },
  access: {
    title: "登录与会话",
    passkeys: "通行密钥",
    passkeysHint: "通行密钥让您通过指纹、面容或设备 PIN 登录，无需链接。",
    noPasskeys: "还没有通行密钥：下次登录需要管理员提供新链接，或使用登录页面提供的其他方式。",
    add: "添加通行密钥",
    goOn: "继续",
    name: "名称",
    nameHint: "便于您日后辨认。其余步骤由浏览器引导。",
    suggestedName: "此设备",
    synced: "已同步",
    added: "添加时间",
    used: "上次使用",
    change: "更改",
    rename: "重命名",
    renameOne: (name: string) => `重命名 ${name}`,
    remove: "删除",
    removeOne: (name: string) => `删除 ${name}`,
    removeWarning: "删除后任何人都无法再用它登录。由它开始的会话会继续，直到您将其结束。",
    alreadyHere: "此设备上已有您账户的通行密钥。",
    notGiven: "浏览器没有给出通行密钥。",
    notGivenRemedy: "操作已取消、超时，或此地址没有可用的通行密钥。",
    sessions: "正在进行的会话",
    browser: "浏览器",
    thisOne: "当前会话",
    method: "登录方式",
    methods: { link: "链接", passkey: "通行密钥", oidc: "OpenID Connect", front: "前端代理", token: "令牌" },
    from: "来源地址",
    begun: "开始时间",
    ends: "结束时间",
    end: "结束",
    endOne: (begun: string) => `结束开始于 ${begun} 的会话`,
    endOthers: "结束所有其他会话",
  },
  overview,
  keys,
  cards,
  usage,
  request,
  models,
  tryIt,
  help,
  errorWords,
};
