/** Every page of the operator: what it shows, in light and dark, narrow and wide, in English and Chinese. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { assertAccessible } from "../accessible.ts";
import { assertFits, chat, type OperatorWorld, openOperator, settled } from "./world.ts";

after(closeBrowser);

/** By address: the heading in English and in Chinese, and what must be there before the page is checked. */
const PAGES = [
  ["", "Overview", "概览", ".chart canvas"],
  ["accounts", "Accounts", "账户", "tbody tr"],
  ["accounts/{account}", "{account}", "{account}", "tbody tr"],
  ["accounts/{account}/{key}", "{key}", "{key}", ".panels .panel"],
  ["codes", "Codes", "兑换码", "tbody tr"],
  ["codes/{batch}", "Spring fair", "Spring fair", "tbody tr"],
  ["records", "Ledger and audit", "账本与审计", "tbody tr"],
  ["records/ledger?account={account}", "Ledger and audit", "账本与审计", "tbody tr"],
  ["records/ledger?account={account}&request={request}", "Ledger and audit", "账本与审计", "tbody tr"],
  ["upstreams", "Upstreams", "上游", "tbody tr"],
  ["upstreams/up-chat", "up-chat", "up-chat", "tbody tr"],
  ["explain", "Explain", "请求解释", "form"],
  ["reconcile", "Reconcile and margin", "对账与毛利", "tbody tr"],
  ["notices", "Notices", "通知", "h2"],
  ["configuration", "Configuration", "配置", "details"],
  ["store", "Store and journal", "存储与预写日志", ".figure .badge"],
] as const;

type Facts = Readonly<Record<string, string>>;

/** Creates something to show on every page. */
async function furnish({ here, admin }: OperatorWorld): Promise<Facts> {
  const { name: account, key, keyId } = await here.account({ usd: "12.5" });
  await admin("PUT", `/accounts/${account}/labels`, { labels: { team: "red" } });
  await admin("PUT", `/accounts/${account}/limits`, { budgets_usd: { day: "5.00" } });
  await admin("PUT", `/keys/${keyId}/limits`, { budgets_usd: { day: "3.00" }, models: ["*"] });
  await admin("POST", `/accounts/${account}/gifts`, { card: "day", id: "gift" });
  const batch = await admin("POST", "/codes", { card: "day", count: 3, label: "Spring fair" });
  const request = await chat(here, key);
  await chat(here, key, "nothing");
  return { account, request, key: keyId, batch: String(batch.batch_id) };
}

const filled = (text: string, facts: Facts) => text.replace(/\{(\w+)\}/g, (_, name: string) => facts[name] ?? "");

async function lookAtAll(world: OperatorWorld, facts: Facts, how: string, language: 1 | 2 = 1): Promise<void> {
  for (const page of PAGES) {
    await world.open(filled(page[0], facts));
    await world.page.getByRole("heading", { level: 1, name: filled(page[language], facts), exact: true }).waitFor();
    await world.page.locator(`main ${page[3]}`).first().waitFor();
    await settled(world.page);
    const name = `${page[0].replace(/[^a-z]+/g, "-").replace(/-$/, "") || "overview"}-${how}`;
    // Except for colors, axe's findings do not depend on the width or the color scheme.
    if (how === "light") await assertAccessible(world.page, name);
    if (how === "dark") await assertAccessible(world.page, name, "colours");
    await assertFits(world.page, name);
  }
  assert.deepEqual(world.complaints, []);
}

test("every page is accessible and fits, light", async (t) => {
  const world = await openOperator(t);
  await lookAtAll(world, await furnish(world), "light");
});

test("every page is accessible and fits, dark and in Chinese", async (t) => {
  const world = await openOperator(t, { dark: true, language: "zh-CN" });
  await lookAtAll(world, await furnish(world), "dark", 2);
});

test("every page fits at 360 px", async (t) => {
  const world = await openOperator(t, { width: 360, height: 780 });
  await lookAtAll(world, await furnish(world), "narrow");
});

test("every page fits at 2,000 px", async (t) => {
  const world = await openOperator(t, { width: 2_000, height: 1_200 });
  await lookAtAll(world, await furnish(world), "wide");
});
