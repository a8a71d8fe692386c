/**
 * The files in deploy/ are accepted by the programs that they are for, and each check is shown to refuse a wrong file.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { parse, parseAllDocuments, stringify } from "yaml";
import { loadConfig } from "../../../../src/config/config.ts";
import { checkEnvoyFile } from "../../../rig/envoy.ts";
import { checkNginxFile } from "../../../rig/nginx.ts";
import { wheelProgram } from "../../../rig/wheels.ts";

const read = (file: string) => readFileSync(file, "utf8");

test("nginx -t accepts nginx.conf", async () => {
  assert.match(await checkNginxFile(), /test is successful/);
  const unix = (text: string) => text.replace("server 127.0.0.1:8787 ", "server unix:/run/tollgate/tollgate.sock ");
  assert.match(await checkNginxFile(unix), /test is successful/, "the variant with a unix socket");
  await assert.rejects(checkNginxFile((text) => text.replace("proxy_buffering off", "proxy_buffering of")));
});

test("envoy --mode validate accepts envoy.yaml", async () => {
  assert.match(await checkEnvoyFile(), /OK/);
  const unix = (text: string) =>
    text.replace(
      "address: { socket_address: { address: 127.0.0.1, port_value: 8787 } }",
      "address: { pipe: { path: /run/tollgate/tollgate.sock } }",
    );
  assert.match(await checkEnvoyFile(unix), /OK/, "the variant with a unix socket");
  await assert.rejects(checkEnvoyFile((text) => text.replace("normalize_path", "normalise_path")));
});

test("systemd-analyze verify accepts the unit, and its exposure is low", (t) => {
  if (spawnSync("systemd-analyze", ["--version"]).error) {
    return t.diagnostic("deploy/tollgate.service was NOT verified: this machine has no systemd-analyze");
  }
  const dir = mkdtempSync(join(tmpdir(), "tollgate-unit-"));
  try {
    const unit = join(dir, "tollgate.service");
    // The program must exist for `verify`; nothing else is added.
    writeFileSync(unit, read("deploy/tollgate.service").replaceAll("/usr/local/bin/tollgate", "/bin/true"));
    const verified = spawnSync("systemd-analyze", ["verify", unit], { encoding: "utf8" });
    assert.deepEqual([verified.status, verified.stderr], [0, ""]);
    const security = spawnSync("systemd-analyze", ["security", "--offline=true", "--threshold=20", unit], {
      encoding: "utf8",
    });
    assert.equal(security.status, 0, security.stdout);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test("hadolint and kubernetes-validate with the strict schemas of Kubernetes accept the files", async () => {
  const judge = async (name: Parameters<typeof wheelProgram>[0], words: readonly string[], input: string) => {
    const [program, ...args] = await wheelProgram(name);
    const { status, stdout, stderr } = spawnSync(program as string, [...args, ...words], { input, encoding: "utf8" });
    return { status, said: stdout + stderr };
  };
  const dockerfile = read("deploy/Dockerfile");
  assert.deepEqual(await judge("hadolint", ["-"], dockerfile), { status: 0, said: "" });
  const wrong = dockerfile.replace("# hadolint ignore=DL3008\n", "");
  assert.equal((await judge("hadolint", ["-"], wrong)).status, 1);
  const kubernetes = read("deploy/kubernetes.yaml");
  const validate = ["--strict", "--quiet", "-"];
  assert.deepEqual(await judge("kubernetes-validate", validate, kubernetes), { status: 0, said: "" });
  const misspelt = kubernetes.replace("readOnlyRootFilesystem", "readOnlyRootFileSystem");
  assert.notEqual((await judge("kubernetes-validate", validate, misspelt)).status, 0);
});

test("the image contains only the executable: no file copied into it could run another program", () => {
  const stages = read("deploy/Dockerfile").split(/^FROM /m);
  assert.match(stages.at(-1) ?? "", /^scratch\nCOPY --from=build \/image \/\n/);
  assert.match(stages.at(-1) ?? "", /^USER 1000:1000$/m);
  // The build context must include what the build stage copies.
  const passed = new Set(read("deploy/Dockerfile.dockerignore").match(/(?<=^!).+$/gm));
  for (const [, words] of read("deploy/Dockerfile").matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const file of (words as string).split(" ")) assert.ok(passed.has(file.replace(/^\.\//, "")), file);
  }
});

test("drain.sh: the shell can parse it, misuse is exit status 2, and a wrong server changes nothing", () => {
  execFileSync("sh", ["-n", "deploy/drain.sh"]);
  const drain = (args: string[], env = {}) =>
    spawnSync("deploy/drain.sh", args, { encoding: "utf8", env: { ...process.env, ...env } });
  for (const args of [[], ["nginx"], ["nginx", "f", "s", "12x"], ["apache", "x"]]) {
    assert.equal(drain(args).status, 2, args.join(" "));
  }
  const dir = mkdtempSync(join(tmpdir(), "tollgate-drain-"));
  try {
    const file = join(dir, "upstream.conf");
    const text = "upstream u {\n  server 127.0.0.1:8787 max_fails=1;\n  server 127.0.0.1:87870;\n}\n";
    writeFileSync(file, text);
    assert.equal(drain(["nginx-back", file, "127.0.0.1:1"], { NGINX_CMD: "true" }).status, 1);
    assert.equal(read(file), text);
    assert.equal(
      drain(["nginx-back", file, "127.0.0.1:8787"], { NGINX_CMD: "false" }).status,
      1,
      "nginx refuses the file",
    );
    assert.equal(read(file), text);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test("compose.yaml: the files that it mounts exist, and no read-only service has an inline file", () => {
  const compose = parse(read("deploy/compose.yaml")) as Compose;
  // Made by the operator, as the file says.
  const own = new Set(["./certs/tollgate.crt", "./certs/tollgate.key"]);
  const mounted = Object.values(compose.services).flatMap(({ volumes = [] }) =>
    volumes.map((line) => line.split(":")[0]),
  );
  const files = mounted.filter((source) => source?.startsWith(".") && !own.has(source)) as string[];
  assert.ok(files.length > 5, files.join(" "));
  for (const file of files) assert.ok(existsSync(join("deploy", file)), file);
  // Compose: "cannot create config in read-only service: `file` is the sole supported option".
  const inline = Object.entries({ ...compose.configs, ...compose.secrets }).filter(([, source]) => !source.file);
  const refused = new Set(inline.map(([name]) => name));
  for (const [name, { read_only, configs = [], secrets = [] }] of Object.entries(compose.services)) {
    if (!read_only) continue;
    for (const used of [...configs, ...secrets]) {
      assert.ok(!refused.has(typeof used === "string" ? used : used.source), `${name} is read-only`);
    }
  }
});

test("compose.yaml and kubernetes.yaml are YAML, and the gateway configurations with them are valid", () => {
  assert.deepEqual(parseAllDocuments(read("deploy/compose.yaml"))[0]?.errors, []);
  assertConfig(read("deploy/compose/tollgate.yaml"));
  const kinds = parseAllDocuments(read("deploy/kubernetes.yaml")).map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS() as { kind: string; data?: Record<string, string> };
  });
  const map = kinds.find(({ kind }) => kind === "ConfigMap");
  assertConfig(map?.data?.["tollgate.yaml"] ?? "");
});

test("promtool: the scrape job of kubernetes.yaml sends a token, and the alerts know its name", () => {
  const text = read("deploy/kubernetes.yaml");
  const comment = /(?:^# {3}(?:- job_name| {2,}\S).*\n)+/m.exec(text.slice(text.indexOf("# Metrics:")))?.[0] ?? "";
  const jobs = parse(comment.replaceAll(/^# {3}/gm, "")) as Record<string, unknown>[];
  const [job] = jobs;
  assert.ok(job && jobs.length === 1);
  for (const [, name] of read("deploy/alerts.yml").matchAll(/job="([^"]+)"/g)) assert.equal(name, job.job_name);
  const [pod] = text.split("kind: StatefulSet\n").slice(1);
  assert.match(pod ?? "", /labels: \{ app: tollgate \}/);
  assert.match(pod ?? "", /name: admin, containerPort: 8788/);
  assert.ok(!text.includes("prometheus.io/scrape:"), "a scrape job for all pods has no token");
  const dir = mkdtempSync(join(tmpdir(), "tollgate-scrape-"));
  try {
    const [token, file] = [join(dir, "token"), join(dir, "prometheus.yml")];
    writeFileSync(token, "0123456789abcdef");
    // Debian's promtool does not support Kubernetes.
    const { kubernetes_sd_configs, ...rest } = job;
    assert.deepEqual(kubernetes_sd_configs, [{ role: "pod" }]);
    writeFileSync(file, stringify({ scrape_configs: [{ ...rest, authorization: { credentials_file: token } }] }));
    const checked = spawnSync("promtool", ["check", "config", file], { encoding: "utf8" });
    assert.equal(checked.status, 0, checked.stdout + checked.stderr);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  assert.deepEqual(Object.keys(job.authorization ?? {}), ["credentials_file"]);
});

type Use = string | { readonly source: string };

interface Compose {
  readonly services: Record<string, { volumes?: string[]; read_only?: boolean; configs?: Use[]; secrets?: Use[] }>;
  readonly configs?: Record<string, { file?: string }>;
  readonly secrets?: Record<string, { file?: string }>;
}

function assertConfig(text: string): void {
  const env = {
    TOLLGATE_ADMIN_TOKEN: "0123456789abcdef",
    TOLLGATE_SEALING_KEY: "0123456789abcdef0123456789abcdef",
    EAST_KEY: "k",
    TOLLGATE_STORE: "redis://127.0.0.1:6379/0",
  };
  const loaded = loadConfig({ file: "inside.yaml", text, env });
  assert.ok("settings" in loaded, JSON.stringify("problems" in loaded ? loaded.problems : []));
}
