import { ask, chat, openAccount, priceOf, startHouse } from "./house.ts";
const n = 2000;
const house = await startHouse({ store: "redis", gateways: 2 });
house.simulator.program({ text: "Yes.", usage: { input: 0, cached: 1, output: 1 } }, { times: Infinity });
const [a, b] = house.gateways;
for (const stream of [false, true]) {
  const body = chat({ model: "chat-cheap", maxTokens: 16, stream });
  const { hold, cost } = await priceOf(a!, body);
  const acc = await openAccount(a!, { funds: hold + cost * BigInt(n), group: "money" });
  let refused = 0;
  for (let i = 0; i < n; i++) {
    const r = await ask(i % 2 ? a! : b!, acc.key, body);
    if (r.status !== 200) refused++;
  }
  console.log({ stream, refused, n });
}
await house.close();
process.exit(0);
