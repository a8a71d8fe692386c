/**
 * A process listens when it has read its journal. What restarts a process that does not answer must not do so before,
 * because the next one would read the journal from its beginning.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { parseAllDocuments } from "yaml";

/** Ten times what a full journal of the default size takes on a busy machine. */
const START_S = 300;

const read = (name: string) => readFileSync(`deploy/${name}`, "utf8");

interface Probe {
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

test("kubernetes.yaml, the image and the unit give a start five minutes at least", () => {
  const set = parseAllDocuments(read("kubernetes.yaml"))
    .map((one) => one.toJS())
    .find(({ kind }) => kind === "StatefulSet");
  const containers: { name: string; startupProbe?: Probe }[] = set.spec.template.spec.containers;
  const probe = containers.find(({ name }) => name === "tollgate")?.startupProbe;
  assert.ok(probe && probe.periodSeconds * probe.failureThreshold >= START_S);
  const [, period] = /^HEALTHCHECK .*--start-period=(\d+)s /m.exec(read("Dockerfile")) ?? [];
  assert.ok(Number(period) >= START_S);
  // With this type the time limit of a start ends when the program runs; `notify` would include the journal.
  assert.match(read("tollgate.service"), /^Type=exec$/m);
});
