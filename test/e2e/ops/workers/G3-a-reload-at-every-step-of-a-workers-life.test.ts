/**
 * docs/failure-model.md rows G3 and G4: a reload, with all secrets of the start replaced, meets a worker at each step
 * of its life.
 */
import test from "node:test";
import { reloadAtEveryStep } from "./every-step.ts";

test("the worker goes on", { timeout: 280_000 }, (t) => reloadAtEveryStep(t, "SIGCONT"));
