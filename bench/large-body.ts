/** Sends one body at a time, in a process of its own, whose work must not be taken for the gateway's; for large-bodies.ts. */
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
