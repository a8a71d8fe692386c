/** deploy/nginx.conf names a log file. A container has no logrotate, so there the file must be the container's output. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { parse, parseAllDocuments } from "yaml";

interface Container {
  readonly name?: string;
  readonly command?: readonly string[];
}

const read = (name: string) => readFileSync(new URL(`../../../../deploy/${name}`, import.meta.url), "utf8");

test("each log file of nginx.conf is a link to standard output in compose.yaml and kubernetes.yaml", () => {
  const files = [...read("nginx.conf").matchAll(/^\s*access_log (\S+)/gm)].map(([, file]) => file as string);
  assert.ok(files.length > 0);
  const set = parseAllDocuments(read("kubernetes.yaml")).map((one) => one.toJS());
  const { spec } = set.find(({ kind }) => kind === "StatefulSet");
  const pod = (spec.template.spec.containers as Container[]).find(({ name }) => name === "nginx");
  const composed: string[] = parse(read("compose.yaml")).services.nginx.entrypoint;
  for (const words of [pod?.command, composed]) {
    assert.deepEqual(words?.slice(0, 2), ["sh", "-c"]);
    for (const file of files) assert.ok(words?.[2]?.includes(`ln -sf /dev/stdout ${file} `), file);
    assert.match(words?.[2] ?? "", /exec \/docker-entrypoint\.sh nginx -g 'daemon off;'$/);
  }
});
