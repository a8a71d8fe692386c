/** Gives a key a new value; everything else about it stays the same. */
import type { KeyAnswer } from "../../../answers/answers.ts";
import type { KeyGroupsAnswer, NewKeyAnswer } from "../../../answers/own.ts";
import { ask } from "../../parts/api.ts";
import { useAction } from "../../parts/load.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button, Field, Form } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { mayBeMade } from "./create.ts";
import { ShownOnce } from "./shown-once.ts";

const W = T.owner.keys;

interface RotatePanelProps {
  readonly of: KeyAnswer;
  readonly groups: KeyGroupsAnswer | undefined;
  readonly onChanged: () => void;
}

const OVERLAPS = [0, 3_600, 86_400, 604_800, 2_592_000] as const;
const DAY_S = 86_400;

export function RotatePanel({ of: key, groups, onChanged }: RotatePanelProps): VNode {
  const [overlap, setOverlap] = useState(`${DAY_S}`);
  const [made, setMade] = useState<NewKeyAnswer | undefined>(undefined);
  const rotate = useAction(async () => {
    setMade(undefined);
    const body = { overlap_seconds: Number(overlap) };
    setMade(await ask<NewKeyAnswer>(`/keys/${key.id}/rotate`, { method: "POST", body }));
    onChanged();
  });
  return html`<section class="panel" aria-label=${W.rotate}>
    <h2>${W.rotate}</h2>
    <p class="hint">${W.rotateHint}</p>
    <${Form} action=${rotate} onSubmit=${() => rotate.run()}>
      <${Field} label=${W.overlap}>${({ id }: { id: string }) => html`<select
        id=${id}
        value=${overlap}
        onChange=${(event: Event) => setOverlap((event.target as HTMLSelectElement).value)}
      >${OVERLAPS.map((seconds) => html`<option value=${`${seconds}`}>${W.overlaps[seconds]}</option>`)}</select>`}</${Field}>
      <${Button} kind="main" isRunning=${rotate.isRunning}>${W.rotateNow}</${Button}>
      ${mayBeMade(rotate.refused) && html`<p class="note warn">${W.rotateLost}</p>`}
    </${Form}>
    ${made && html`<${ShownOnce} made=${made} groups=${groups} />`}
  </section>`;
}
