/** The catalog, for pages with a choice of models. */
import type { OwnModelAnswer, OwnModelsAnswer } from "../../answers/own-usage.ts";
import { useAnswer } from "../parts/load.ts";

/** The models; empty until they are loaded. */
export function useModels(): readonly OwnModelAnswer[] {
  return useAnswer<OwnModelsAnswer>("/models").data?.items ?? NONE;
}

export function useModelNames(): readonly string[] {
  return useModels().map(({ name }) => name);
}

const NONE: readonly OwnModelAnswer[] = [];
