/**
 * docs/failure-model.md rows G3 and G4: a reload, with all secrets of the start replaced, while a worker is at each
 * step of its life.
 */
import test from "node:test";
import { reloadAtEveryStep } from "./every-step.ts";

test("a reload reaches a worker at any step of its life", (t) => reloadAtEveryStep(t, "SIGCONT"));
