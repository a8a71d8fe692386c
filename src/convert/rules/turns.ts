/** Collects the turns of a conversation and merges neighbors that belong together, in linear time. */
import type { AssistantPart, SystemTurn, TextPart, ToolResult, Turn } from "../hub.ts";
import { isBlank } from "./system.ts";

export class TurnList {
  readonly #turns: Turn[] = [];
  /** The list inside the last turn, while that turn can still grow. */
  #results: ToolResult[] | undefined;
  #parts: AssistantPart[] | undefined;
  #system: TextPart[] | undefined;

  /** Whether there is no turn yet, so that system text still counts as leading (docs/translation-rules.md rule 10). */
  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  get turns(): readonly Turn[] {
    return this.#turns;
  }

  /** Adds a turn that is never merged. */
  push(turn: Turn): void {
    this.#close();
    this.#turns.push(turn);
  }

  /** Adds results, merged with directly preceding results (rule 13). */
  pushResults(results: readonly ToolResult[], param: string): void {
    if (results.length === 0) return;
    if (this.#results === undefined) {
      const list: ToolResult[] = [];
      this.push({ role: "tool", results: list, param });
      this.#results = list;
    }
    for (const result of results) this.#results.push(result);
  }

  /** Adds parts, merged with directly preceding assistant items (rule 14). */
  pushAssistant(parts: readonly AssistantPart[], param: string): void {
    if (this.#parts === undefined) {
      const list: AssistantPart[] = [];
      this.push({ role: "assistant", parts: list, param });
      this.#parts = list;
    }
    for (const part of parts) this.#parts.push(part);
  }

  /** Adds system text in the middle. Blank text is skipped; neighbors are merged. */
  pushSystem(parts: SystemTurn["parts"], param: string): void {
    const texts = parts.filter((part) => !isBlank(part.text));
    if (texts.length === 0) return;
    if (this.#system === undefined) {
      const list: TextPart[] = [];
      this.push({ role: "system", parts: list, param });
      this.#system = list;
    }
    for (const part of texts) this.#system.push(part);
  }

  #close(): void {
    this.#results = undefined;
    this.#parts = undefined;
    this.#system = undefined;
  }
}
