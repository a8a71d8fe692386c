/**
 * A preflight of a configured origin is answered with the header names that it asks for. A text of another form, or of
 * more characters than any browser sends, is not repeated in the answer: the browser then refuses the request itself.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { request, startEcho } from "./echo.ts";

test("up to 1,024 characters of header names are granted, and a longer or another text is not repeated", async (t) => {
  const { target } = await startEcho(t, { corsOrigins: ["https://app.test"] });
  const granted = async (asked: string) => {
    const headers = [
      ...["Origin: https://app.test", "Access-Control-Request-Method: POST"],
      `Access-Control-Request-Headers: ${asked}`,
    ];
    const line = "OPTIONS /v1/chat/completions HTTP/1.1";
    const [answer] = await exchange(target, request({ line, headers, body: "", key: undefined }));
    assert.equal(answer?.status, 204);
    return answer.headers["access-control-allow-headers"];
  };
  const most = "x-name-7,".repeat(113).padEnd(1_024, "a");
  assert.equal(await granted(most), most);
  assert.equal(await granted(`${most}a`), undefined);
  assert.equal(await granted("authorization; <script>"), undefined);
});
