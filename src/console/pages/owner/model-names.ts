/** The catalog, for pages that let one choose a model. */
import type { OwnModelAnswer, OwnModelsAnswer } from "../../answers/own-usage.ts";
import { useAnswer } from "../parts/load.ts";

/** The models; none until they are there. */
export function useModels(): readonly OwnModelAnswer[] {
  return useAnswer<OwnModelsAnswer>("/models").data?.items ?? NONE;
}

export function useModelNames(): readonly string[] {
  return useModels().map(({ name }) => name);
}

const NONE: readonly OwnModelAnswer[] = [];
