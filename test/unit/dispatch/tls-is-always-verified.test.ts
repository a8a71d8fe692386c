/** docs/failure-model.md row 70: a certificate for another host, an expired one, or one of an unknown CA is refused. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type { UpstreamSettings } from "../../../src/values/settings.ts";
import { ask, assertAnswered, listening, refusalIn, rig, route, upstream } from "./rig.ts";

const dir = mkdtempSync(join(tmpdir(), "tollgate-tls-"));
test.after(() => rmSync(dir, { recursive: true }));

function openssl(...args: string[]): void {
  execFileSync("openssl", args, { cwd: dir, stdio: "ignore" });
}

function makeCa(name: string): void {
  const subject = ["-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.pem`];
  openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", ...subject);
}

function makeCertificate(name: string, ca: string, altName: string, ...validity: string[]): void {
  writeFileSync(join(dir, `${name}.ext`), `subjectAltName=${altName}\n`);
  const request = ["-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`];
  openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", ...request);
  const signing = ["-CA", `${ca}.pem`, "-CAkey", `${ca}.key`, "-CAcreateserial", "-extfile", `${name}.ext`];
  openssl("x509", "-req", "-in", `${name}.csr`, "-out", `${name}.pem`, ...signing, ...validity);
}

makeCa("ours");
makeCa("strangers");
makeCertificate("good", "ours", "DNS:localhost", "-days", "1");
makeCertificate("elsewhere", "ours", "DNS:elsewhere.example", "-days", "1");
makeCertificate("foreign", "strangers", "DNS:localhost", "-days", "1");
// Every openssl accepts a negative number of days; not every one accepts -not_after.
makeCertificate("expired", "ours", "DNS:localhost", "-days", "-1");

function trusting(caFile: string): Pick<UpstreamSettings, "tls"> {
  return { tls: { ca: readFileSync(join(dir, caFile), "utf8"), identity: undefined, serverName: undefined } };
}

async function serving(t: test.TestContext, name: string, heard: () => void): Promise<string> {
  const server = createServer(
    { key: readFileSync(join(dir, `${name}.key`)), cert: readFileSync(join(dir, `${name}.pem`)) },
    (_request, response) => {
      heard();
      response.setHeader("content-type", "application/json").end("{}");
    },
  );
  return listening(t, server, "https", "localhost");
}

test("70: a certificate of the configured CA for this host is accepted", async (t) => {
  const base = await serving(t, "good", () => {});
  const { dispatcher } = rig(t, [upstream("east", base, trusting("ours.pem"))]);
  assertAnswered(await dispatcher.run(ask([route("east")], { stream: false })));
});

for (const ca of [undefined, "ours.pem"]) {
  test(`the configured name of a server is asked for with ${ca ?? "the system's CAs"}`, async (t) => {
    const asked: string[] = [];
    const pem = (file: string) => readFileSync(join(dir, file));
    const server = createServer({
      key: pem("good.key"),
      cert: pem("good.pem"),
      SNICallback(name, done) {
        asked.push(name);
        done(null);
      },
    });
    const base = await listening(t, server, "https", "127.0.0.1");
    const tls = { ...trusting("ours.pem").tls, serverName: "models.example" };
    const settings = upstream("east", base, { tls: { ...tls, ca: ca && tls.ca } });
    const { dispatcher } = rig(t, [settings]);
    const result = await dispatcher.run(ask([route("east")], { stream: false }));
    assert.equal(refusalIn(result).cause, "upstream_unavailable", "the certificate is for another name");
    assert.deepEqual(asked, ["models.example"]);
  });
}

for (const [name, caFile] of [
  ["elsewhere", "ours.pem"],
  ["expired", "ours.pem"],
  ["foreign", "ours.pem"],
  ["good", undefined],
] as const) {
  test(`70: the ${name} certificate with ${caFile ?? "the system's CAs"} is refused`, async (t) => {
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    t.after(() => {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    });
    // An environment variable must not disable verification.
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    let requests = 0;
    const base = await serving(t, name, () => {
      requests += 1;
    });
    const settings = upstream("east", base, caFile === undefined ? {} : trusting(caFile));
    const { dispatcher, warnings } = rig(t, [settings]);
    const result = await dispatcher.run(ask([route("east")], { stream: false }));
    assert.equal(refusalIn(result).cause, "upstream_unavailable");
    assert.deepEqual(
      result.attempts.map(({ sentToUpstream }) => sentToUpstream),
      [false],
    );
    assert.deepEqual(
      warnings.map(({ kind }) => kind),
      ["tls"],
    );
    assert.equal(requests, 0);
  });
}

test("70: two upstreams at one address never share a connection", async (t) => {
  const base = await serving(t, "good", () => {});
  const made = rig(t, [upstream("east", base, trusting("ours.pem")), upstream("west", base)]);
  assertAnswered(await made.dispatcher.run(ask([route("east")], { stream: false })));
  const result = await made.dispatcher.run(ask([route("west")], { stream: false }));
  assert.equal(refusalIn(result).cause, "upstream_unavailable");
});
