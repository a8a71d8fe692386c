/**
 * Node silently skips a certificate of a CA file that it cannot read, and all that follow it. Servers whose CA is among
 * them would fail verification without a reason, so such a file is refused when it is loaded.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { formatProblem, loadConfig } from "../../../../src/config/config.ts";
import { selfSigned } from "../../../rig/certificates.ts";
import { LEAST } from "./least.ts";

test("a CA file is refused if its second certificate is cut off or damaged, and accepted if both can be read", () => {
  const { cert } = selfSigned();
  const problemsWith = (ca: string) => {
    const text = LEAST.replace('/v1"}', '/v1", tls: {ca_file: /run/ca.pem}}');
    const loaded = loadConfig({ text, env: {}, readFile: () => ca });
    return "problems" in loaded ? loaded.problems.map(formatProblem) : [];
  };
  assert.deepEqual(problemsWith(cert + cert), []);
  const [begin = "", ...lines] = cert.split("\n");
  const cut = [begin, ...lines.slice(0, 2)].join("\n");
  const damaged = cert.replace(/\n[A-Za-z0-9+/]{20}/, "\nAAAAAAAAAAAAAAAAAAAA");
  for (const [name, second] of Object.entries({ cut, damaged })) {
    const [problem, ...more] = problemsWith(cert + second);
    assert.match(problem ?? "", /upstreams\.east\.tls\.ca_file: .*each of them must be readable/, name);
    assert.deepEqual(more, [], name);
  }
});
