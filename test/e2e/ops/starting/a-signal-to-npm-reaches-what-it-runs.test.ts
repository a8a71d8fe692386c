/** A service manager that runs `npm start` stops the process that listens, and not only the shell before it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import test from "node:test";

const scripts = (JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> }).scripts;

test("the scripts that serve replace npm's shell with the gateway", () => {
  for (const name of ["start", "upstream"]) assert.match(scripts[name] ?? "", /(^| )exec node src\/main\.ts /, name);
});

test("a SIGTERM to npm ends the server that it runs", async (t) => {
  // A separate process group, so that nothing is left behind if the test fails.
  const npm = spawn("npm", ["run", "--silent", "upstream"], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => {
    try {
      process.kill(-(npm.pid as number), "SIGKILL");
    } catch {
      // All of it has ended, as it should.
    }
  });
  let port = 0;
  for await (const line of createInterface({ input: npm.stdout })) {
    port = Number(/listens at http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? 0);
    if (port > 0) break;
  }
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
  const ended = once(npm, "exit");
  npm.kill("SIGTERM");
  await ended;
  const [error] = await once(connect(port, "127.0.0.1"), "error");
  assert.equal((error as NodeJS.ErrnoException).code, "ECONNREFUSED");
});
