/**
 * Hot reload compares texts and relies on no notification: a change is noticed once and soon, also through links, when
 * the file is replaced, and when other files in its folder change.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { bad, better, good, watched } from "./watched.ts";

type Scene = Awaited<ReturnType<typeof watched>>;

/** The look that finds a change and the one that confirms it. */
const CHANGE_LOOKS = 2;
const LOOKS_MAX = 12;

function heartbeats({ settings }: Scene): number[] {
  return settings.map(({ heartbeatMs }) => heartbeatMs);
}

/**
 * The layout of a ConfigMap by the kubelet: the file is a link into `..data`, which is a link to the folder of a
 * version.
 */
function configMap(folder: string, text: string): string {
  version(folder, "..2026_01", text);
  symlinkSync("..2026_01", join(folder, "..data"));
  symlinkSync(join("..data", "tollgate.yaml"), join(folder, "tollgate.yaml"));
  return join(folder, "tollgate.yaml");
}

function version(folder: string, name: string, text: string): void {
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, "tollgate.yaml"), text);
}

function swapVersion(folder: string): void {
  version(folder, "..2026_02", better);
  symlinkSync("..2026_02", join(folder, "..data_tmp"));
  renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
  rmSync(join(folder, "..2026_01"), { recursive: true });
}

test("a new version of a ConfigMap is noticed", async (t) => {
  const scene = await watched(t, { place: configMap });
  swapVersion(scene.folder);
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual(heartbeats(scene), [7_000]);
});

test("a new version of a ConfigMap is noticed through a link from another folder", async (t) => {
  const scene = await watched(t, {
    place(folder, text) {
      mkdirSync(join(folder, "mounted"));
      mkdirSync(join(folder, "etc"));
      symlinkSync(configMap(join(folder, "mounted"), text), join(folder, "etc", "tollgate.yaml"));
      return join(folder, "etc", "tollgate.yaml");
    },
  });
  swapVersion(join(scene.folder, "mounted"));
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual(heartbeats(scene), [7_000]);
});

test("a file changed from outside, as behind a bind mount of the file, is noticed", async (t) => {
  const scene = await watched(t, {
    place(folder, text) {
      mkdirSync(join(folder, "host"));
      mkdirSync(join(folder, "container"));
      writeFileSync(join(folder, "host", "tollgate.yaml"), text);
      // As with a bind mount, only the file is shared: no event happens in this folder.
      linkSync(join(folder, "host", "tollgate.yaml"), join(folder, "container", "tollgate.yaml"));
      return join(folder, "container", "tollgate.yaml");
    },
  });
  writeFileSync(join(scene.folder, "host", "tollgate.yaml"), better);
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual(heartbeats(scene), [7_000]);
});

test("an editor that moves the old file away and writes the new one in steps causes one reload", async (t) => {
  const scene = await watched(t);
  const { file, look, problems } = scene;
  renameSync(file, `${file}~`);
  await look();
  writeFileSync(file, better.slice(0, 100));
  await look();
  writeFileSync(file, better);
  await look(CHANGE_LOOKS);
  assert.deepEqual([heartbeats(scene), problems.length], [[7_000], 0]);
  truncateSync(file);
  await look();
  writeFileSync(file, good);
  await look(CHANGE_LOOKS);
  assert.deepEqual([heartbeats(scene), problems.length], [[7_000, 10_000], 0]);
});

test("a file that keeps changing is read as it is after a second", async (t) => {
  const scene = await watched(t);
  let looks = 0;
  while (scene.settings.length === 0) {
    looks++;
    assert.ok(looks < LOOKS_MAX, "continuous changes do not delay the reload for ever");
    writeFileSync(scene.file, `${better}# ${looks}\n`);
    await scene.look();
  }
  assert.ok(looks > CHANGE_LOOKS, "the watch waits for the file to settle");
  await scene.look(CHANGE_LOOKS);
  assert.equal(scene.problems.length, 0);
});

test("a change that is reverted has no effect, and the next change gets the full time to settle", async (t) => {
  const scene = await watched(t);
  writeFileSync(scene.file, `${better}# taken back\n`);
  await scene.look();
  writeFileSync(scene.file, good);
  await scene.look(CHANGE_LOOKS);
  writeFileSync(scene.file, better.slice(0, 100));
  await scene.look();
  writeFileSync(scene.file, better);
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual([heartbeats(scene), scene.problems.length], [[7_000], 0]);
});

test("a busy neighbour file affects neither the time nor the number of reloads", async (t) => {
  const scene = await watched(t);
  const busy = () => writeFileSync(join(scene.folder, "tollgate.log"), "a line\n", { flag: "a" });
  writeFileSync(scene.file, better);
  for (let i = 0; i < CHANGE_LOOKS; i++) {
    busy();
    await scene.look();
  }
  assert.deepEqual(heartbeats(scene), [7_000]);
  busy();
  await scene.look(CHANGE_LOOKS);
  assert.equal(scene.settings.length, 1);
});

test("the file of a secret counts as part of the configuration", async (t) => {
  const withSecret = (folder: string) =>
    good.replace("chat, base_url", `chat, api_key: "file:${folder}/key", base_url`);
  const scene = await watched(t, {
    place(folder) {
      writeFileSync(join(folder, "key"), "first-key\n");
      writeFileSync(join(folder, "tollgate.yaml"), withSecret(folder));
      return join(folder, "tollgate.yaml");
    },
  });
  const key = join(scene.folder, "key");
  const keys = () => scene.settings.map(({ upstreams }) => [...upstreams.values()][0]?.apiKey?.reveal());
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual(keys(), []);
  writeFileSync(`${key}.new`, "second-key\n");
  renameSync(`${key}.new`, key);
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual(keys(), ["second-key"]);
  assert.equal(
    scene.copies.at(-1)?.files.get(key),
    "second-key\n",
    "the copy has the value that the settings were made from",
  );
  rmSync(key);
  await scene.look(LOOKS_MAX);
  assert.deepEqual([keys().length, scene.problems.length], [1, 1], "a missing secret is reported once");
  writeFileSync(key, "third-key\n");
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual(keys(), ["second-key", "third-key"]);
  // A bad text refers to no secrets any more, and the next good one does again.
  writeFileSync(scene.file, "]");
  await scene.look(CHANGE_LOOKS);
  writeFileSync(key, "fourth-key\n");
  writeFileSync(scene.file, withSecret(scene.folder));
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual([keys().at(-1), scene.problems.length], ["fourth-key", 2]);
});

test("a certificate and its key that are replaced one after the other are loaded together", async (t) => {
  const pair = (folder: string, name: string) => {
    const at = (end: string) => join(folder, `${name}.${end}`);
    execFileSync("openssl", [
      ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=test".split(" "),
      ...["-keyout", at("key"), "-out", at("pem")],
    ]);
    return { key: at("key"), pem: at("pem") };
  };
  const scene = await watched(t, {
    place(folder) {
      const { key, pem } = pair(folder, "our");
      const tls = `chat, tls: {cert_file: "${pem}", key_file: "${key}"}, base_url: "https:`;
      writeFileSync(join(folder, "tollgate.yaml"), good.replace('chat, base_url: "http:', tls));
      return join(folder, "tollgate.yaml");
    },
  });
  const next = pair(scene.folder, "next");
  renameSync(next.pem, join(scene.folder, "our.pem"));
  await scene.look();
  renameSync(next.key, join(scene.folder, "our.key"));
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual([scene.settings.length, scene.problems.length], [1, 0]);
});

test("a configuration from a pipe is read once", async (t) => {
  const scene = await watched(t, {
    place(folder, text) {
      const pipe = join(folder, "pipe");
      execFileSync("mkfifo", [pipe]);
      // Reading blocks this process until the other one writes.
      spawn("sh", ["-c", 'printf %s "$TEXT" > "$0"', pipe], { env: { TEXT: text }, stdio: "ignore" });
      return pipe;
    },
  });
  await scene.look(CHANGE_LOOKS);
  scene.watch.reload();
  assert.deepEqual([heartbeats(scene), scene.problems.length], [[10_000], 0]);
  await scene.look(CHANGE_LOOKS + 1);
  assert.deepEqual([heartbeats(scene), scene.problems.length], [[10_000], 0]);
});

for (const [what, put] of Object.entries({
  folder: (path: string) => mkdirSync(path),
  pipe: (path: string) => execFileSync("mkfifo", [path]),
  device: (path: string) => symlinkSync("/dev/zero", path),
})) {
  test(`a ${what} in place of the file is reported and stops nothing, and the next file there is read`, async (t) => {
    const scene = await watched(t);
    rmSync(scene.file);
    put(scene.file);
    await scene.look(CHANGE_LOOKS);
    assert.match(scene.problems[0]?.[0]?.message ?? "", /not a file/);
    // SIGHUP does not wait for a writer on the pipe.
    scene.watch.reload();
    assert.equal(scene.problems.length, 2);
    rmSync(scene.file, { recursive: true });
    writeFileSync(scene.file, better);
    await scene.look(CHANGE_LOOKS);
    assert.deepEqual(heartbeats(scene), [7_000]);
  });

  test(`a ${what} in place of a secret is reported, and the next file there is read`, async (t) => {
    const scene = await watched(t, {
      place(folder, text) {
        writeFileSync(join(folder, "secret"), "a-secret-of-the-upstream");
        const file = join(folder, "tollgate.yaml");
        writeFileSync(file, text.replace("chat, base_url", `chat, api_key: "file:${folder}/secret", base_url`));
        return file;
      },
    });
    const secret = join(scene.folder, "secret");
    rmSync(secret);
    put(secret);
    await scene.look(CHANGE_LOOKS);
    assert.equal(scene.problems.length, 1);
    rmSync(secret, { recursive: true });
    writeFileSync(secret, "another-secret-of-it");
    await scene.look(CHANGE_LOOKS);
    assert.deepEqual([scene.settings.length, scene.problems.length], [1, 1]);
  });
}

test("SIGHUP during a look is not undone by what the look has read", async (t) => {
  const scene = await watched(t);
  writeFileSync(scene.file, bad);
  await scene.look();
  // The second look, which would confirm the change, reads the bad text; SIGHUP reads the good one before the look
  // ends.
  const armed = once(scene.clock, "armed");
  scene.clock.fire();
  writeFileSync(scene.file, better);
  scene.watch.reload();
  await armed;
  await scene.look(CHANGE_LOOKS);
  assert.deepEqual([heartbeats(scene), scene.problems.length], [[7_000], 0]);
});
