/** A conversation as it is being read: neighbours that belong together become one turn, in linear time. */
import type { AssistantPart, SystemTurn, TextPart, ToolResult, Turn } from "../hub.ts";
import { isBlank } from "./system.ts";

export class TurnList {
  readonly #turns: Turn[] = [];
  /** The list inside the last turn, while that turn can still grow. */
  #results: ToolResult[] | undefined;
  #parts: AssistantPart[] | undefined;
  #system: TextPart[] | undefined;

  /** Whether nothing has been said yet, so that system text still leads (docs/translation-rules.md rule 10). */
  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  get turns(): readonly Turn[] {
    return this.#turns;
  }

  /** Adds a turn that stays by itself. */
  push(turn: Turn): void {
    this.#close();
    this.#turns.push(turn);
  }

  /** Adds results to a run of results (rule 13). */
  pushResults(results: readonly ToolResult[], param: string): void {
    if (results.length === 0) return;
    if (this.#results === undefined) {
      const list: ToolResult[] = [];
      this.push({ role: "tool", results: list, param });
      this.#results = list;
    }
    for (const result of results) this.#results.push(result);
  }

  /** Adds parts to a run of assistant-side items (rule 14). */
  pushAssistant(parts: readonly AssistantPart[], param: string): void {
    if (this.#parts === undefined) {
      const list: AssistantPart[] = [];
      this.push({ role: "assistant", parts: list, param });
      this.#parts = list;
    }
    for (const part of parts) this.#parts.push(part);
  }

  /** Adds system text in the middle; blank text is none, and neighbours are one turn. */
  pushSystem(parts: SystemTurn["parts"], param: string): void {
    const told = parts.filter((part) => !isBlank(part.text));
    if (told.length === 0) return;
    if (this.#system === undefined) {
      const list: TextPart[] = [];
      this.push({ role: "system", parts: list, param });
      this.#system = list;
    }
    for (const part of told) this.#system.push(part);
  }

  #close(): void {
    this.#results = undefined;
    this.#parts = undefined;
    this.#system = undefined;
  }
}
