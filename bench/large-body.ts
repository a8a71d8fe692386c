/** Sends one body at a time for large-bodies.ts, in its own process so that its work does not count as the gateway's. */
import { request } from "node:http";

process.on("message", ({ url, key, text }: { url: string; key: string; text: string }) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const asked = request(url, { method: "POST", headers }, (reply) => {
    reply.resume();
    reply.on("end", () => process.send?.({ status: reply.statusCode ?? 0 }));
  });
  asked.on("error", () => process.send?.({ status: 0 }));
  asked.end(text);
});
process.on("disconnect", () => process.exit(0));
