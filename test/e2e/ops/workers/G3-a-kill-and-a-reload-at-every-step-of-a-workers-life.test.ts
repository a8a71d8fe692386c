/**
 * docs/failure-model.md rows G3 and G4: a reload, with all secrets of the start replaced, and then a kill, at each step
 * of a worker's life.
 */
import test from "node:test";
import { reloadAtEveryStep } from "./every-step.ts";

test("a reload reaches all workers although one is killed at any step of its life", (t) =>
  reloadAtEveryStep(t, "SIGKILL"));
