/** The first snapshot has nothing to compare with: the page shows neither a rate nor "In the last 0 s". */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, openWindow } from "../../../../rig/browser.ts";
import { startGatewayHere } from "../../../../rig/gateway.ts";
import { assertUsable, signIn } from "./world.ts";

after(closeBrowser);

/** Gives a page only the first snapshot of its first stream, however late it reads and however often it connects. */
const FIRST_ONLY = `{
  const asked = window.fetch;
  let isConnected = false;
  const first = () => {
    let text = "";
    const decoder = new TextDecoder();
    return new TransformStream({
      transform(bytes, to) {
        if (text.includes("\\n\\n")) return;
        text += decoder.decode(bytes, { stream: true });
        const end = text.indexOf("\\n\\n");
        if (end >= 0) to.enqueue(new TextEncoder().encode(text.slice(0, end + 2)));
      },
    });
  };
  window.fetch = async (...how) => {
    if (String(how[0]).endsWith("/live") && isConnected) return new Promise(() => {});
    const response = await asked(...how);
    if (!response.url.endsWith("/live") || !response.ok) return response;
    isConnected = true;
    return new Response(response.body.pipeThrough(first()), { status: response.status });
  };
}`;

for (const [language, begun, span] of [
  ["en", "Counted from now on.", /In the last/],
  ["zh-CN", "从现在开始统计。", /最近/],
] as const) {
  test(`the first live figures have no rate, refusals and spend, in ${language}`, async (t) => {
    const here = await startGatewayHere();
    t.after(() => here.close());
    const { page, complaints } = await openWindow(t, { language });
    await page.addInitScript(FIRST_ONLY);
    await page.goto(`${here.adminUrl}/console/`);
    await signIn(page, here.gateway.adminToken);
    await page.getByText(begun).first().waitFor();
    assert.equal(await page.getByText(begun).count(), 2);
    assert.equal(await page.locator(".figure dd").first().innerText(), "–");
    assert.doesNotMatch(await page.locator("main").innerText(), span);
    await assertUsable(page, `overview-first-${language}`);
    assert.deepEqual(complaints, []);
  });
}
